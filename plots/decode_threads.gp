# SPDX-License-Identifier: MIT
#
# decode_threads.gp - decode speed against threads, a line per setting

set xlabel "threads" textcolor rgb ink
set ylabel "tokens per second" . (log_y ? " (logarithmic)" : "") textcolor rgb ink
eval "set xtics (" . x_ticks . ")"

is(i) = column("series") == i
x_if(condition) = condition ? column("n_threads") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") < 2)):"tok_per_s" \
            with lines lw 2 lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 0)):"tok_per_s":"lo":"hi" \
            with yerrorbars lw 1.2 lc rgb color(i) pt solid(i) ps 1.3*point notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 1)):"tok_per_s":"lo":"hi" \
            with yerrorbars lw 1.2 lc rgb color(i) pt hollow(i) ps 1.5*point notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 2)):"tok_per_s" \
            with points pt 2 ps 1.4*point lw 2 lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using "n_threads":"tok_per_s":(is(i) && column("state") == 2 ? strcol("note") : "") \
            with labels noenhanced left offset 1,0 font ",11" textcolor rgb color(i) notitle, \
        for [i=0:n_series-1] keyentry with linespoints lw 2 lc rgb color(i) pt solid(i) ps 1.3*point title series[i+1], \
        for [i=1:(n_hollow > 0)] keyentry with points pt 6 ps 1.5*point lc rgb "#777777" title "partial or disturbed", \
        for [i=1:(n_crosses > 0)] keyentry with points pt 2 ps 1.4*point lw 2 lc rgb "#777777" title "no figure"
    set output
}
