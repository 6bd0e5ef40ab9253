# SPDX-License-Identifier: MIT
#
# kernels_heatmap.gp - per cent of the roof, formats down, groups and levels across

set border 0
unset key
unset grid
set tics scale 0
set ytics ()
do for [i=1:n_formats] { set ytics add (formats[i] i-1) }
set xtics font ",12"
set xtics ()
do for [i=1:n_columns] { set xtics add ((has_levels ? columns[i] : groups[i]) i-1) }
if (n_columns > 8) { set xtics rotate by 40 right }
set bmargin at screen (n_columns > 8 ? 0.15 : 0.07)
set rmargin at screen 0.92
set tmargin at screen (has_levels ? 0.80 : 0.84)
do for [i=1:n_groups] {
    if (has_levels) {
        # names above their columns, one above the other by turns where it is narrow
        set label 100+i groups[i] at (begin[i] + begin[i+1] - 1) / 2.0, graph (n_columns > 8 && i % 2 == 0 ? 1.055 : 1.02) \
            center font ",11" textcolor rgb ink noenhanced
        if (i > 1) { set arrow 100+i from begin[i] - 0.5, graph 0 to begin[i] - 0.5, graph 1 nohead lw 1 lc rgb "#777777" front }
    }
}

set palette defined (0 "#f7fbff", 25 "#c6dbef", 50 "#6baed6", 75 "#2171b5", 100 "#08306b")
set cbrange [0:100]
set cbtics 25
set colorbox user origin 0.935, 0.2 size 0.014, 0.5
ink_on(percent) = percent > 55 ? 0xffffff : 0x333333
cell_font = n_columns > 20 ? ",9" : n_columns > 12 ? ",10" : ",12"

# Many formats need more height than the other charts have.
height = 300 + 26 * n_formats
height = height < 571 ? 571 : height
output_png = sprintf("point = 1; set terminal pngcairo size 1400,%d font 'DejaVu Sans,15' lw 1.6 noenhanced; set output name.'.png'", height * 1.4)
output_svg = sprintf("point = 0.6; set terminal svg size 1000,%d dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'", height)

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
        data using "column":"row":(column("state") == 0 ? sprintf("%.0f", column("percent")) : strcol("note")):(column("state") == 0 ? ink_on(column("percent")) : 0x999999) \
            with labels noenhanced font cell_font textcolor rgb variable notitle
    set output
}
