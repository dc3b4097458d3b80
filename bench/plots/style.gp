# No background and a middle grey: readable on white and on black. Okabe and Ito's colours, which can be told
# apart without colour vision; lines differ in their points as well.
set termoption noenhanced
grey = '#7d8590'
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set xlabel textcolor rgb grey
set ylabel textcolor rgb grey
set title textcolor rgb grey
set key textcolor rgb grey
set linetype 1 linecolor rgb '#d55e00' pointtype 7  linewidth 2.5
set linetype 2 linecolor rgb '#0083cc' pointtype 5  linewidth 2
set linetype 3 linecolor rgb '#009e73' pointtype 9  linewidth 2
