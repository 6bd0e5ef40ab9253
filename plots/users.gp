# SPDX-License-Identifier: MIT
#
# users.gp - two figures of each number of users, one above the other, a line for each
# server: latencies against throughput with their limits, or throughput against users

longest = 14
do for [i=1:n_series] {
    if (strlen(series[i]) > longest) { longest = strlen(series[i]) }
}
if (n_hollow > 0 && longest < 22) { longest = 22 }
if (n_little > 0 && longest < 26) { longest = 26 }
height = 950.0
eval frame
right_edge = 0.93 - 0.0077 * longest
set rmargin at screen right_edge
set key at screen right_edge + 0.015, 0.72 left top Left reverse vertical noenhanced samplen 1.6 spacing 1.35
middle_gap = 54.0
panel_height = (height - head - foot - middle_gap) / 2

is(i) = column("series") == i
x_if(condition) = condition ? column("x") : NaN
upper_or_lower(p) = p == 1 ? "upper" : "lower"
limits(p) = p == 1 ? limits_1 : limits_2
limits_x(p) = p == 1 ? limits_x_1 : limits_x_2 # where their names begin, of the width
limit_unit(p) = p == 1 ? " s" : " ms"

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    if (log_x) { set logscale x }
    if (strlen(x_ticks) > 0) { eval "set xtics (" . x_ticks . ")" }
    do for [p=1:2] {
        top = p == 1 ? height - head : foot + panel_height
        set tmargin at screen top / height
        set bmargin at screen (top - panel_height) / height
        unset logscale y
        set ytics autofreq
        y_low = p == 1 ? y_min_1 : y_min_2
        y_high = p == 1 ? y_max_1 : y_max_2
        if (p == 1 ? log_y_1 : log_y_2) {
            set logscale y
            set ytics ()
            do for [power=-5:6] { do for [part in "1 2 5"] {
                at = part * 10.0 ** power
                if (at >= y_low && at <= y_high) { set ytics add (sprintf("%.10g", at) at) }
            } }
        }
        set yrange [y_low:y_high]
        set ylabel (p == 1 ? y_title_1 : y_title_2) textcolor rgb ink
        set format x (p == 2 ? "%.10g" : "")
        if (p == 2) { set xlabel x_title textcolor rgb ink } else { unset xlabel }
        do for [k=1:words(limits(p))] {
            set arrow 100+k from graph 0, first word(limits(p), k)+0 to graph 1, first word(limits(p), k)+0 nohead dt (9,6) lw 1.6 lc rgb "#B00020"
            set label 100+k "limit " . word(limits(p), k) . limit_unit(p) at graph word(limits_x(p), k)+0, first word(limits(p), k)+0 offset 0,0.6 left font ",12" textcolor rgb "#B00020"
        }
        y = upper_or_lower(p)
        plot \
            for [s=0:n_series-1] data using (x_if(is(s))):y with lines lw 2 lc rgb color(s) notitle, \
            for [s=0:n_series-1] data using (x_if(is(s) && column("state") == 0)):y:y."_lo":y."_hi" \
                with yerrorbars lw 1.2 lc rgb color(s) pt solid(s) ps 1.3*point notitle, \
            for [s=0:n_series-1] data using (x_if(is(s) && column("state") == 1)):y:y."_lo":y."_hi" \
                with yerrorbars lw 1.2 lc rgb color(s) pt hollow(s) ps 1.5*point notitle, \
            for [s=0:n_series-1] data using (x_if(is(s) && column("little") == 1)):y \
                with points pt 6 ps 2.8*point lw 1.6 lc rgb ink notitle, \
            for [s=0:n_series-1] data using (is(s) ? column(y."_label_x") : NaN):y."_label_y":(has_limits ? strcol("n_users") : "") \
                with labels noenhanced center font ",12" textcolor rgb color(s) notitle, \
            for [s=0:(p == 1 ? n_series-1 : -1)] keyentry with linespoints lw 2 lc rgb color(s) pt solid(s) ps 1.3*point title series[s+1], \
            for [k=1:(p == 1 && n_hollow > 0)] keyentry with points pt 6 ps 1.5*point lw 1.2 lc rgb grey title "partial or disturbed", \
            for [k=1:(p == 1 && n_little > 0)] keyentry with points pt 6 ps 2.8*point lw 1.6 lc rgb ink title "Little's law does not hold"
        unset label
        unset arrow
    }
    unset multiplot
    set output
    eval frame
}
