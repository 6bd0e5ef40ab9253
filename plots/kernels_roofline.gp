# SPDX-License-Identifier: MIT
#
# kernels_roofline.gp - every kernel as a point under the roofs of the same run
#
# What reads its weights from memory stays below the slopes; what is hot reads from a
# cache and may stand above them, and below the level of its arithmetic only.

set logscale x
eval "set xtics (" . x_ticks . ")"
set grid xtics ytics lc rgb faint lw 1 lt 1
set xlabel "operations per byte of weights" textcolor rgb ink
set ylabel "giga-operations per second" textcolor rgb ink
set samples 400

min(a, b) = a < b ? a : b
sloping(i, x) = slope[i] > 0 && slope[i] * x <= top[i] ? slope[i] * x : NaN
flat(i) = slope[i] > 0 ? NaN : top[i]

# Slopes are named at their lower ends, levels at their right ends. A slope of one in
# logarithms, as an angle: 0.65 by 0.71 of a picture of 7 by 4.
angle = atan2(0.71 * 4 / (log(y_max) - log(y_min)), 0.65 * 7 / (log(x_max) - log(x_min))) * 180 / pi
side(i) = strstrt(roofs[i], "threads") ? 1.25 : 0.8
do for [i=1:n_roofs] {
    if (slope[i] > 0) {
        at_x = x_min * 1.1 > y_min * 1.3 / slope[i] ? x_min * 1.1 : y_min * 1.3 / slope[i]
        set label 100+i roofs[i] at at_x, slope[i] * at_x * side(i) left rotate by angle font ",11" textcolor rgb "#777777" noenhanced
    } else {
        set label 100+i roofs[i] at x_max * 0.95, top[i] * 1.12 right font ",11" textcolor rgb "#777777" noenhanced
    }
}

is(g, l) = column("group") == g && column("level") == l
x_if(condition) = condition ? column("ops_per_byte") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=1:n_roofs] sloping(i, x) with lines lw 1.4 dt (9,6) lc rgb "#777777" notitle, \
        for [i=1:n_roofs] flat(i) with lines lw 1.4 dt (9,6) lc rgb "#777777" notitle, \
        for [g=0:n_groups-1] for [l=0:n_levels-1] data using (x_if(is(g, l))):"gops" \
            with points pt solid(l) ps 1.1*point lc rgb color(g) notitle, \
        for [g=0:n_groups-1] keyentry with points pt solid(0) ps 1.3*point lc rgb color(g) title groups[g+1], \
        for [l=0:(n_levels > 1 ? n_levels-1 : -1)] keyentry with points pt solid(l) ps 1.3*point lc rgb "#777777" title levels[l+1], \
        keyentry with lines lw 1.4 dt (9,6) lc rgb "#777777" title "roof"
    set output
}
