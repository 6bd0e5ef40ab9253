# SPDX-License-Identifier: MIT
#
# cache.gp - read bandwidth by working set, read again and after it was evicted from all
# caches, a colour for each number of threads; the reported size of the last-level cache,
# and the measured one with its range

set logscale x
eval "set xtics (" . x_ticks . ")"
set xlabel "working set, MiB (logarithmic)" textcolor rgb ink
set ylabel "GB/s" textcolor rgb ink
set rmargin at screen 0.76

# Each name of a size has a line of its own, right of the size or, where there is no room,
# left of it.
on_left(x, most) = log(x) > log(x_min) + most * (log(x_max) - log(x_min))
if (reported > 0) {
    set arrow 10 from reported, graph 0 to reported, graph 1 nohead lw 1.6 dt (9,6) lc rgb grey
    if (on_left(reported, 0.82)) { set label 10 sprintf("reported %.4g MiB", reported) at reported, graph 0.965 right offset -0.5,0 font ",12" textcolor rgb grey }
    if (!on_left(reported, 0.82)) { set label 10 sprintf("reported %.4g MiB", reported) at reported, graph 0.965 left offset 0.5,0 font ",12" textcolor rgb grey }
}
do for [i=1:n_series] {
    if (size[i] > 0) {
        name_y = 0.965 - 0.055 * (n_series - i + 1)
        set object 20+i rectangle from first lo[i], graph 0 to first hi[i], graph 1 fc rgb color(i-1) fs transparent solid 0.1 noborder behind
        set arrow 20+i from size[i], graph 0 to size[i], graph 1 nohead lw 1.6 dt (9,6) lc rgb color(i-1)
        measured = sprintf("%s: measured %.3g MiB (%.3g to %.3g)", series[i], size[i], lo[i], hi[i])
        if (on_left(size[i], 0.6)) { set label 20+i measured at size[i], graph name_y right offset -0.5,0 font ",12" textcolor rgb color(i-1) }
        if (!on_left(size[i], 0.6)) { set label 20+i measured at size[i], graph name_y left offset 0.5,0 font ",12" textcolor rgb color(i-1) }
    }
}
is(i) = column("line") == i
x_if(condition) = condition ? column("mib") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_series-1] data using (x_if(is(i))):"evicted_gbps" with lines \
            lw 1.6 dt (2,5) lc rgb color(i) title series[i+1].", evicted before", \
        for [i=0:n_series-1] data using (x_if(is(i))):"again_gbps" with linespoints \
            lw 2 pt solid(i) ps 0.9*point lc rgb color(i) title series[i+1].", read again"
    set output
}
