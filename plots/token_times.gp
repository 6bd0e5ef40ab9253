# SPDX-License-Identifier: MIT
#
# token_times.gp - the share of tokens that took at most so long, a line for each setting

longest = 0
do for [i=1:n_series] {
    if (strlen(series[i]) > longest) { longest = strlen(series[i]) }
}
is_below = 0.05 + 0.0077 * longest > 0.36
height = 800.0 + (is_below ? 32.0 * n_series : n_series > 18 ? 32.0 * (n_series - 18) : 0)
foot = foot + (is_below ? 32.0 * n_series + 40 : 0)
eval frame
if (is_below) { set key outside below vertical maxrows n_series }
set xlabel "ms per token" . (log_x ? " (logarithmic)" : "") textcolor rgb ink
set ylabel "tokens that took at most so long, %" textcolor rgb ink
if (log_x) {
    set logscale x
    set xtics ()
    do for [power=-2:7] { do for [part in "1 2 5"] {
        at = part * 10.0 ** power
        if (at >= x_min && at <= x_max) { set xtics add (sprintf("%.10g", at) at) }
    } }
}
array dash[n_series]
do for [i=1:n_series] { dash[i] = doubtful[i] ? 3 : 1 }
is(i) = column("series") == i
x_if(condition) = condition ? column("ms") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_series-1] data using (x_if(is(i))):"percent" with steps \
            lw 2 dt dash[i+1] lc rgb step_color(i, n_series) \
            title series[i+1].(doubtful[i+1] ? " (doubtful)" : "")
    set output
}
