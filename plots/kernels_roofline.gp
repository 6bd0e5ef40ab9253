# SPDX-License-Identifier: MIT
#
# kernels_roofline.gp - every kernel as a point under the roofs of the same run
#
# Weights from memory stay below the slopes. Weights in a cache ("hot") may stand above
# them, but below the level of their arithmetic.

height = 860.0
foot = 128.0
eval frame
set logscale x
eval "set xtics (" . x_ticks . ")"
set grid xtics ytics lc rgb faint lw 1 lt 1
set xlabel "operations per byte of weights" textcolor rgb ink
set ylabel "giga-operations per second" textcolor rgb ink
set samples 400
set rmargin at screen 0.57
set key at screen 0.752, screen 0.5 left center
set label 3 "hot: weights in the second-level cache, so above the slopes of memory; cold: weights from memory" \
    at screen 0.02, 22 / height left font ",12" textcolor rgb "#555555" noenhanced

sloping(i, x) = slope[i] > 0 && slope[i] * x <= top[i] ? slope[i] * x : NaN
flat(i) = slope[i] > 0 ? NaN : top[i]

# Slopes are named at their lower ends, where no kernel is; levels beside the chart, with
# a distance that keeps their names apart. A slope of one in logarithms, as an angle.
angle = atan2((height - head - foot) / (log(y_max) - log(y_min)), 1400 * 0.47 / (log(x_max) - log(x_min))) * 180 / pi
do for [i=1:n_roofs] {
    if (slope[i] > 0) {
        at_x = x_min * 1.15 > y_min * 1.4 / slope[i] ? x_min * 1.15 : y_min * 1.4 / slope[i]
        set label 100+i roofs[i] at at_x, slope[i] * at_x * side[i] left rotate by angle font ",11" textcolor rgb grey noenhanced
    } else {
        set label 100+i roofs[i] at screen 0.592, first label_y[i] left font ",11" textcolor rgb grey noenhanced
        set arrow 100+i from graph 1, first top[i] to screen 0.588, first label_y[i] nohead lw 0.7 lc rgb "#aaaaaa"
    }
}

is(g, l) = column("group") == g && column("level") == l
x_if(condition) = condition ? column("ops_per_byte") : NaN
# Colours come round after seven groups, then with hollow marks.
mark(g, l) = g % 14 < 7 ? solid(l) : hollow(l)

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=1:n_roofs] sloping(i, x) with lines lw 1.4 dt (9,6) lc rgb grey notitle, \
        for [i=1:n_roofs] flat(i) with lines lw 1.4 dt (9,6) lc rgb grey notitle, \
        for [g=0:n_groups-1] for [l=0:n_levels-1] data using (x_if(is(g, l))):"gops" \
            with points pt mark(g, l) ps 1.1*point lc rgb color(g) notitle, \
        for [g=0:n_groups-1] keyentry with points pt mark(g, 0) ps 1.3*point lc rgb color(g) title groups[g+1], \
        for [l=0:(n_levels > 1 ? n_levels-1 : -1)] keyentry with points pt solid(l) ps 1.3*point lc rgb grey title levels[l+1], \
        for [i=1:(n_roofs > 0)] keyentry with lines lw 1.4 dt (9,6) lc rgb grey title "roof"
    set output
}
