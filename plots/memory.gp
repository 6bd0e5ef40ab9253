# SPDX-License-Identifier: MIT
#
# memory.gp - peak memory charged per setting, what was planned, and the limit

set ylabel "GiB" textcolor rgb ink
set xtics scale 0
set xtics ()
do for [i=1:n_series] { set xtics add (series[i] i-1) }
if ((sum [i=1:n_series] strlen(series[i])) > 60) {
    set xtics rotate by 25 right
    set bmargin at screen 0.22
}
set boxwidth 0.5 absolute

# Figures stand within their bars; above them where a bar is lower than a line of text.
low(peak) = peak < 0.07 * y_max
figure_y(peak) = low(peak) ? peak + 0.03 * y_max : peak - 0.03 * y_max
# Notes stand left of the middle, where the mark of the planned need is.
note_y(peak) = 0.03 * y_max + (low(peak) ? peak : 0)

x_if(condition) = condition ? column("position") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        data using (x_if(column("state") == 0)):"peak_gib" \
            with boxes fs solid 0.85 noborder lc rgb color(0) notitle, \
        data using (x_if(column("state") == 1)):"peak_gib" \
            with boxes fs solid 0.25 border rgb color(1) lc rgb color(1) lw 2 notitle, \
        data using (column("position") - 0.42):"limit":(0.84):(0) \
            with vectors nohead lw 2.5 lc rgb ink notitle, \
        data using "position":"planned_gib" \
            with points pt 13 ps 1.6*point lc rgb color(4) notitle, \
        data using "position":(figure_y(column("peak_gib"))):(column("state") < 2 ? sprintf("%.2f", column("peak_gib")) : "") \
            with labels font ",12" textcolor rgb "#000000" notitle, \
        data using (column("position") - 0.17):(note_y(column("peak_gib"))):(column("state") > 0 ? strcol("note") : "") \
            with labels noenhanced left rotate font ",11" textcolor rgb "#000000" notitle, \
        keyentry with boxes fs solid 0.85 noborder lc rgb color(0) title "peak charged", \
        for [i=1:(n_hollow > 0)] keyentry with boxes fs solid 0.25 border rgb color(1) lc rgb color(1) lw 2 title "peak, did not fit", \
        keyentry with points pt 13 ps 1.6*point lc rgb color(4) title "planned need", \
        for [i=1:(n_limits > 0)] keyentry with lines lw 2.5 lc rgb ink title "limit"
    set output
}
