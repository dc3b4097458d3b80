# Blocks, one a line: bytes, ratio to cp, lower and upper end of its interval. The first one gets the band.
set terminal svg size 860,400 font 'sans-serif,14'
load style
set title heading
set ylabel 'time relative to cp'
set logscale x
set yrange [0:1.2<*<2.5]
set xtics ('1 B' 1, '4 KiB' 2**12, '64 KiB' 2**16, '1 MiB' 2**20, '16 MiB' 2**24, '256 MiB' 2**28, '4 GiB' 2**32)
set grid ytics linecolor rgb grey linewidth 0.4 dashtype 3
set key outside bottom center horizontal
set arrow from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb grey linewidth 1.5
set label 'cp' at graph 0.995, first 1 right offset 0,0.6 textcolor rgb grey
set style fill transparent solid 0.25 noborder
plot $data index 0 using 1:3:4 with filledcurves linecolor rgb '#d55e00' notitle, \
     for [i=0:2] $data index i using 1:2 with linespoints linetype i+1 title columnheader(1)
