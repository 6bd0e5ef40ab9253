# SPDX-License-Identifier: MIT
#
# gate_power.gp - share of failing gates against the true slowdown
#
# Curves that coincide stay visible: each later one is thinner, with smaller marks,
# upon the one before.

set xlabel "true slowdown of B, %" textcolor rgb ink
set ylabel "gates that fail, %" textcolor rgb ink
set yrange [-3:103]
set ytics 0,20,100
set xrange [x_min-0.15:x_max+0.15]
set xtics 0,1
set arrow 1 from margin, graph 0 to margin, graph 1 nohead lc rgb grey lw 1.4 dt (6,6)
set label 3 "margin " at margin, graph 0.96 right font ",12" textcolor rgb "#555555"
set dashtype 2 (6,4)
set style fill transparent solid 0.22 noborder

dash(i) = i < n_bands ? 1 : 2
upon(i) = i < n_bands ? n_bands - 1 - i : n_series - 1 - i
width(i) = i < n_bands ? 1.8 + 2.2 * upon(i) : 2
size(i) = 1.2 + (i < n_bands ? 0.75 : 0.45) * upon(i)
is(i) = column("series") == i
x_if(condition) = condition ? column("slowdown_percent") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_bands-1] data using (x_if(is(i))):"least":"most" \
            with filledcurves lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i))):"fail_percent" \
            with lines lw width(i) dt dash(i) lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i))):"fail_percent" \
            with points pt solid(i) ps size(i)*point lc rgb color(i) notitle, \
        for [i=0:n_series-1] keyentry with linespoints lw width(i) dt dash(i) \
            lc rgb color(i) pt solid(i) ps size(i)*point title series[i+1]
    set output
}
