# SPDX-License-Identifier: MIT
#
# users_ttft.gp - the share of requests whose first token came within so long, a line
# for each number of users; failed requests never reach it. Servers differ by dashes.

longest = 0
do for [i=1:n_series] {
    if (strlen(series[i]) > longest) { longest = strlen(series[i]) }
}
is_below = 0.05 + 0.0077 * longest > 0.36
height = 800.0 + (is_below ? 32.0 * n_series : 0)
foot = foot + (is_below ? 32.0 * n_series + 40 : 0)
eval frame
if (is_below) { set key outside below vertical maxrows n_series }
set xlabel "seconds to the first token" . (log_x ? " (logarithmic)" : "") textcolor rgb ink
set ylabel "requests whose first token came within, %" textcolor rgb ink
if (log_x) {
    set logscale x
    set xtics ()
    do for [power=-5:5] { do for [part in "1 2 5"] {
        at = part * 10.0 ** power
        if (at >= x_min && at <= x_max) { set xtics add (sprintf("%.10g", at) at) }
    } }
}
if (limit > 0) {
    set arrow 100 from limit, graph 0 to limit, graph 1 nohead dt (9,6) lw 1.6 lc rgb "#B00020"
    set label 100 sprintf("limit %g s", limit) at limit, graph 0.03 offset 0.5,0 left font ",12" textcolor rgb "#B00020"
}
set arrow 101 from graph 0, first 90 to graph 1, first 90 nohead dt (2,5) lw 1 lc rgb grey
n_steps = 1
do for [i=1:n_series] { if (step_at[i] + 1 > n_steps) { n_steps = step_at[i] + 1 } }
array dash[n_series]
do for [i=1:n_series] { dash[i] = server[i] == 0 ? 1 : server[i] + 1 }
is(i) = column("line") == i
x_if(condition) = condition ? column("seconds") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_series-1] data using (x_if(is(i))):"percent" with lines \
            lw 2 dt dash[i+1] lc rgb step_color(step_at[i+1], n_steps) \
            title series[i+1]
    set output
}
