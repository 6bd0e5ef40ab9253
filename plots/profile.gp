# SPDX-License-Identifier: MIT
#
# profile.gp - a token's time by operation, work and waiting, and what the roof allows

set xlabel "milliseconds" textcolor rgb ink
unset grid
set grid xtics lc rgb faint lw 1 lt 1
set ytics ()
do for [i=1:n_rows] { set ytics add (rows[i] i-1) }
set ytics scale 0
set lmargin at screen 0.17
set rmargin at screen 0.95
set key inside right bottom

height = 260 + 30 * n_rows
height = height < 571 ? 571 : height
output_png = sprintf("point = 1; set terminal pngcairo size 1400,%d font 'DejaVu Sans,15' lw 1.6 noenhanced; set output name.'.png'", height * 1.4)
output_svg = sprintf("point = 0.6; set terminal svg size 1000,%d dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'", height)

y(shift) = column("position") + shift
total(x) = column("work_ms") + column("wait_ms")
# Far below any roof it is neither memory nor arithmetic that takes the time.
share(x) = 20 * column("roof_ms") < total(0) ? "" : sprintf("%.0f %% of the %s roof", 100 * column("roof_ms") / total(0), strcol("bound"))

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        data using (column("work_ms")/2):"position":(0):"work_ms":(y(-0.36)):(y(0.36)) \
            with boxxyerror fs solid 0.85 noborder lc rgb color(0) title "work", \
        data using (column("work_ms")):"position":"work_ms":(total(0)):(y(-0.36)):(y(0.36)) \
            with boxxyerror fs solid 0.85 noborder lc rgb color(4) title "waiting for the other threads", \
        data using (column("roof_ms")):(y(-0.44)):(0):(0.88) \
            with vectors nohead lw 3 lc rgb color(1) title "what the roof allows", \
        data using (total(0)):"position":(share(0)) \
            with labels left offset 0.8,0 font ",11" textcolor rgb ink notitle
    set output
}
