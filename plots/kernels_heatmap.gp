# SPDX-License-Identifier: MIT
#
# kernels_heatmap.gp - per cent of the roof, formats down, groups and levels across

# Cells keep their size, whatever their number.
cell_height = 36.0
column_width = 1134.0 / n_columns > 110 ? 110.0 : 1134.0 / n_columns
longest = 0
do for [i=1:n_columns] {
    length = strlen(has_levels ? columns[i] : groups[i])
    if (length > longest) { longest = length }
}
is_narrow = 8.6 * longest + 8 > column_width
bar_height = cell_height * n_formats < 110 ? 110.0 : cell_height * n_formats > 500 ? 500.0 : cell_height * n_formats
head = 122.0 + (has_levels ? 18.0 * n_group_lines : 0) + 8
names_height = is_narrow ? 20 + 6.2 * longest : 52.0
bar_rest = bar_height - cell_height * n_formats + 16
foot = (names_height > bar_rest ? names_height : bar_rest) + 24.0 * n_notes + 14
height = head + foot + cell_height * n_formats
eval frame
set lmargin at screen 0.1
right_edge = 0.1 + column_width * n_columns / 1400
set rmargin at screen right_edge

set border 0
unset key
unset grid
set tics scale 0
set ytics ()
do for [i=1:n_formats] { if (strlen(formats[i]) > 9) { set ytics font ",11" } }
do for [i=1:n_formats] { set ytics add (literal(formats[i]) i-1) }
set xtics font ",12"
set xtics ()
do for [i=1:n_columns] { set xtics add (literal(has_levels ? columns[i] : groups[i]) i-1) }
if (is_narrow) { set xtics rotate by 40 right }
do for [i=1:n_groups] {
    if (has_levels) {
        # names above their columns, on lines that keep them apart
        set label 100+i groups[i] at (begin[i] + begin[i+1] - 1) / 2.0, graph 1 + (12 + 18.0 * group_line[i]) / (cell_height * n_formats) \
            center font ",11" textcolor rgb ink noenhanced
        if (i > 1) { set arrow 100+i from begin[i] - 0.5, graph 0 to begin[i] - 0.5, graph 1 nohead lw 1 lc rgb grey front }
    }
}
do for [i=1:n_notes] {
    set label 300+i notes[i] at screen 0.02, (24.0 * (n_notes - i) + 20) / height left font ",12" textcolor rgb "#555555" noenhanced
}

set palette defined (0 "#f7fbff", 25 "#c6dbef", 50 "#6baed6", 75 "#2171b5", 100 "#08306b")
set cbrange [0:100]
set cbtics 25 font ",12"
set colorbox user origin right_edge + 0.028, 1 - (head + bar_height) / height size 0.014, bar_height / height
ink_on(percent) = percent > 55 ? 0xffffff : 0x333333
cell_font = column_width < 40 ? ",9" : column_width < 60 ? ",10" : ",12"

c(shift) = column("column") + shift
r(shift) = column("row") + shift
x_if(condition) = condition ? column("column") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        data using (x_if(column("state") == 0)):"row":(c(-0.48)):(c(0.48)):(r(-0.46)):(r(0.46)):"percent" \
            with boxxyerror fs solid noborder lc palette notitle, \
        data using (x_if(column("state") > 0)):"row":(c(-0.48)):(c(0.48)):(r(-0.46)):(r(0.46)) \
            with boxxyerror fs solid noborder lc rgb "#eeeeee" notitle, \
        data using "column":"row":(column("state") == 0 ? sprintf("%.0f", column("percent")) : strcol("note")):(column("state") == 0 ? ink_on(column("percent")) : 0x777777) \
            with labels noenhanced font cell_font textcolor rgb variable notitle
    set output
}
