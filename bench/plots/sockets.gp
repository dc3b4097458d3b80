# Blocks, one a line: MiB, ratio to read + send, lower and upper end of its interval. The first one gets the band.
set terminal svg size 860,360 font 'sans-serif,14'
load style
set title heading
set ylabel 'time relative to read + send'
set logscale x
set xrange [6:1200]
set yrange [0:1.1]
set xtics ('7 MiB' 7, '21' 21, '63' 63, '98' 98, '200' 200, '350' 350, '700' 700, '   1 GiB' 1024)
set grid ytics linecolor rgb grey linewidth 0.4 dashtype 3
set key outside bottom center horizontal
set arrow from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb grey linewidth 1.5
set label 'read + send, 4 KiB' at graph 0.995, first 1 right offset 0,0.6 textcolor rgb grey
set style fill transparent solid 0.25 noborder
plot $data index 0 using 1:3:4 with filledcurves linecolor rgb '#d55e00' notitle, \
     for [i=0:2] $data index i using 1:2 with linespoints linetype i+1 title columnheader(1)
