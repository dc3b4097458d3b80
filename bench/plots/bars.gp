# Columns: name, length of the bar, CPU time or NaN, colour, words at the bar. The first row is at the top.
set terminal svg size 860,90+32*rows font 'sans-serif,14'
load style
set title heading
set xlabel axis
set xrange [0:longest*1.22]
set yrange [rows-0.4:-0.6]
set border 1
set ytics scale 0
set xtics textcolor rgb grey
set grid xtics linecolor rgb grey linewidth 0.4 dashtype 3
set style fill solid 0.9 noborder
unset key
plot $data using (0):0:(0):2:($0-0.32):($0+0.12):4:ytic(1) with boxxyerror linecolor rgb variable, \
     ''   using (0):0:(0):3:($0+0.16):($0+0.30) with boxxyerror linecolor rgb grey, \
     ''   using 2:($0-0.1):5 with labels left offset 0.6,0 textcolor rgb grey
