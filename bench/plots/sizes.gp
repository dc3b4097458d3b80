load style
set title 'Throughput by file size, whole process, warm'
set xlabel 'file size'
set ylabel 'bytes a second'
set logscale xy
set ytics ('100 B' 100, '1 KiB' 2**10, '32 KiB' 2**15, '1 MiB' 2**20, '32 MiB' 2**25, '1 GiB' 2**30, '32 GiB' 2**35)
set xtics ('1 B' 1, '4 KiB' 2**12, '64 KiB' 2**16, '1 MiB' 2**20, '16 MiB' 2**24, '256 MiB' 2**28, '8 GiB' 2**33)
set key outside right reverse Left samplen 2
stats data using 1 nooutput
plot for [i=0:STATS_blocks-1] data index i using 1:2 with linespoints title columnheader(1)
