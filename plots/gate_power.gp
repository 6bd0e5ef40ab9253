# SPDX-License-Identifier: MIT
#
# gate_power.gp - share of failing gates against the true slowdown

set xlabel "true slowdown of B, %" textcolor rgb ink
set ylabel "gates that fail, %" textcolor rgb ink
set ytics 0,20,100
set xtics 0,1
set arrow 1 from margin, graph 0 to margin, graph 1 nohead lc rgb "#777777" lw 1.4 dt (6,6)
set label 3 "margin " at margin, graph 0.97 right font ",12" textcolor rgb "#555555"
set dashtype 2 (6,4)
set style fill transparent solid 0.22 noborder

dash(i) = i < n_bands ? 1 : 2
is(i) = column("series") == i
x_if(condition) = condition ? column("slowdown_percent") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_bands-1] data using (x_if(is(i))):"least":"most" \
            with filledcurves lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i))):"fail_percent" \
            with lines lw 2 dt dash(i) lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i))):"fail_percent" \
            with points pt solid(i) ps 1.3*point lc rgb color(i) notitle, \
        for [i=0:n_series-1] keyentry with linespoints lw 2 dt dash(i) \
            lc rgb color(i) pt solid(i) ps 1.3*point title series[i+1]
    set output
}
