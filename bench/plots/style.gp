# No background and a middle grey: readable on white and on black. Okabe and Ito's colours, told
# apart without colour vision; lines differ in their points as well.
set terminal svg size 860,440 font 'sans-serif,14' dashed
grey = '#7d8590'
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set xlabel textcolor rgb grey
set ylabel textcolor rgb grey
set title textcolor rgb grey
set key textcolor rgb grey
set grid ytics linecolor rgb grey linewidth 0.4 dashtype 3
set linetype 1 linecolor rgb '#d55e00' pointtype 7  linewidth 2
set linetype 2 linecolor rgb '#0083cc' pointtype 5  linewidth 2
set linetype 3 linecolor rgb '#009e73' pointtype 9  linewidth 2
set linetype 4 linecolor rgb '#cc79a7' pointtype 13 linewidth 2
set linetype 5 linecolor rgb '#e69f00' pointtype 11 linewidth 2
set linetype 6 linecolor rgb '#56b4e9' pointtype 4  linewidth 2
set linetype 7 linecolor rgb '#8c6bb1' pointtype 6  linewidth 2
set linetype 8 linecolor rgb grey      pointtype 8  linewidth 2
set linetype 9 linecolor rgb '#a6761d' pointtype 12 linewidth 2
set linetype 10 linecolor rgb grey     pointtype 1  linewidth 2 dashtype 2
set linetype cycle 10
