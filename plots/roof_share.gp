# SPDX-License-Identifier: MIT
#
# roof_share.gp - per cent of the roof, settings down, threads across

cell_height = 44.0
column_width = 900.0 / n_columns > 170 ? 170.0 : 900.0 / n_columns
longest = 0
do for [i=1:n_rows] {
    if (strlen(rows[i]) > longest) { longest = strlen(rows[i]) }
}
head = 142.0
foot = 86.0
height = head + foot + cell_height * n_rows
height = height < 420 ? 420.0 : height
foot = height - head - cell_height * n_rows
eval frame
left_edge = 0.035 + 0.0092 * longest
left_edge = left_edge > 0.4 ? 0.4 : left_edge
set lmargin at screen left_edge
right_edge = left_edge + column_width * n_columns / 1400
set rmargin at screen right_edge

set border 0
unset key
unset grid
set tics scale 0
set ytics ()
do for [i=1:n_rows] { set ytics add (literal(rows[i]) i-1) }
set ytics noenhanced
set xtics ()
do for [i=1:n_columns] { set xtics add (literal(column_width > 90 ? columns[i] : word(columns[i], 1)) i-1) }
if (column_width <= 90) { set xlabel "threads" textcolor rgb ink }
set palette defined (0 "#f7fbff", 25 "#c6dbef", 50 "#6baed6", 75 "#2171b5", 100 "#08306b")
set cbrange [0:100]
set cbtics 25 font ",12"
set format cb "%.0f %%"
bar_height = cell_height * n_rows < 130 ? 130.0 : cell_height * n_rows
set colorbox user origin right_edge + 0.028, 1 - (head + bar_height) / height size 0.014, bar_height / height
set label 3 "?: disturbed or partial" at screen 0.02, 22 / height left font ",12" textcolor rgb "#555555"
ink_on(percent) = percent > 55 ? 0xffffff : 0x333333

c(shift) = column("column") + shift
r(shift) = column("row") + shift
x_if(condition) = condition ? column("column") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        data using (x_if(column("state") < 2)):"row":(c(-0.48)):(c(0.48)):(r(-0.46)):(r(0.46)):"percent" \
            with boxxyerror fs solid noborder lc palette notitle, \
        data using (x_if(column("state") == 2)):"row":(c(-0.48)):(c(0.48)):(r(-0.46)):(r(0.46)) \
            with boxxyerror fs solid noborder lc rgb "#eeeeee" notitle, \
        data using "column":"row":(column("state") < 2 ? sprintf("%.0f%s", column("percent"), column("state") == 1 ? " ?" : "") : strcol("note")):(column("state") < 2 ? ink_on(column("percent")) : 0x777777) \
            with labels noenhanced font ",13" textcolor rgb variable notitle
    set output
}
