load style
set title 'A file to a socket: IBM in 2008 (Linux 2.6), and here over loopback'
set xlabel 'file size, MiB'
set ylabel 'milliseconds'
set xrange [6:1200]
set logscale xy
set xtics (7, 21, 63, 98, 200, 350, '700' 700, '' 1024)
set label '1 GiB' at 1024, graph -0.065 center textcolor rgb grey
set key top left reverse Left
plot data using 1:2 with linespoints title 'IBM: read + send, 4 KiB' linetype 1 dashtype 2, \
     ''   using 1:3 with linespoints title 'IBM: transferTo' linetype 2 dashtype 2, \
     ''   using 1:4 with linespoints title 'fcopy: read + send, 4 KiB' linetype 3, \
     ''   using 1:5 with linespoints title 'fcopy: sendfile' linetype 4
