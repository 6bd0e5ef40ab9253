# SPDX-License-Identifier: MIT
#
# pareto.gp - decode speed against divergence from the reference, frontier drawn

# Many references need a legend that is higher than the chart.
height = 800.0 + (n_series > 9 ? 32.0 * (n_series - 9) : 0)
eval frame
set xlabel "Kullback-Leibler divergence from the reference, nats (logarithmic; less is better)" textcolor rgb ink
set ylabel "tokens per second" . (log_y ? " (logarithmic)" : "") textcolor rgb ink
set logscale x
eval "set xtics (" . x_ticks . ")"
# A divergence of 0 has no place on a logarithmic axis: it stands beyond a gap in it.
if (has_gap) {
    set object 1 rectangle center first gap_x, graph 0 size screen 0.008, screen 0.02 fc rgb "#ffffff" fs solid noborder front
    set label 3 "/" at first gap_x, graph 0 center offset -0.45,0 font ",15" textcolor rgb grey front
    set label 4 "/" at first gap_x, graph 0 center offset 0.45,0 font ",15" textcolor rgb grey front
    set arrow 1 from first gap_x, graph 0.02 to first gap_x, graph 1 nohead lw 1 dt (3,6) lc rgb "#bbbbbb" back
}

is(i) = column("series") == i
x_if(condition) = condition ? column("kl_mean") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_series-1] data using (x_if(is(i) && column("frontier") > 0)):"tok_per_s" \
            with steps lw 2 lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 0)):"tok_per_s":"lo":"hi" \
            with yerrorbars lw 1.2 lc rgb color(i) pt 7 ps 1.5*point notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 1)):"tok_per_s":"lo":"hi" \
            with yerrorbars lw 1.2 lc rgb color(i) pt 6 ps 1.6*point notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 2 && column("group") == 0)):"tok_per_s" \
            with points pt 2 ps 1.4*point lw 2 lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 2 && column("group") == 1)):"tok_per_s" \
            with points pt 10 ps 1.7*point lw 2 lc rgb color(i) notitle, \
        data using "label_x":"label_y":(strcol("note")) \
            with labels noenhanced center font ",12" textcolor rgb ink notitle, \
        for [i=0:n_series-1] keyentry with linespoints lw 2 lc rgb color(i) pt 7 ps 1.5*point title "against ".series[i+1], \
        keyentry with lines lw 2 lc rgb "#777777" title "nothing better in both", \
        keyentry with points pt 7 ps 1.5*point lc rgb "#777777" title (n_limits > 0 ? "fits the memory limit" : "measured"), \
        for [i=1:(n_hollow > 0)] keyentry with points pt 6 ps 1.6*point lw 2 lc rgb "#777777" title "partial or disturbed", \
        for [i=1:(n_second_group > 0)] keyentry with points pt 10 ps 1.7*point lw 2 lc rgb "#777777" title "does not fit the limit", \
        for [i=1:(n_crosses > n_second_group)] keyentry with points pt 2 ps 1.4*point lw 2 lc rgb "#777777" title "no figure"
    set output
}
