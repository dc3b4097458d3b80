load style
set title 'fcopy and its rivals: '.size.' of random bytes, warm, to a new file. CPU time stacked; real time as points'
set ylabel 'seconds'
set yrange [0:*]
set style data histograms
set style histogram rowstacked
set style fill solid 0.85 noborder
set boxwidth 0.6
set xtics rotate by 35 right
set key outside bottom center horizontal
plot data using 2:xtic(1) title 'user' linetype 5, \
     ''   using 3 title 'sys' linetype 2, \
     ''   using 0:4 with points title 'real' linecolor rgb '#d55e00' pointtype 7 pointsize 0.8
