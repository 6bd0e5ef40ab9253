# SPDX-License-Identifier: MIT
#
# profile.gp - a token's time by operation, work and waiting, and what the roof allows

longest = 8
do for [i=1:n_rows] {
    if (strlen(rows[i]) > longest) { longest = strlen(rows[i]) }
}
head = 164.0
height = head + foot + 40 * n_rows
height = height < 420 ? 420.0 : height
eval frame
set label 3 warning_text at screen 0.02, 1 - 110 / height left font ",12" textcolor rgb "#B04A00" noenhanced
set xlabel "milliseconds" textcolor rgb ink
unset grid
set grid xtics lc rgb faint lw 1 lt 1
set ytics scale 0 noenhanced ()
do for [i=1:n_rows] { set ytics add (literal(rows[i]) i-1) }
set lmargin at screen 0.03 + 0.0084 * longest
set rmargin at screen 0.97
unset key
# What the colours mean, in one line.
at = 1 - 140 / height
set object 1 rectangle center screen 0.03, at size screen 0.02, screen 12 / height fc rgb color(0) fs solid 0.85 noborder
set label 11 "work" at screen 0.046, at left font ",12" textcolor rgb ink
set object 2 rectangle center screen 0.11, at size screen 0.02, screen 12 / height fc rgb color(4) fs solid 0.85 noborder
set label 12 "waiting for the other threads" at screen 0.126, at left font ",12" textcolor rgb ink
set arrow 13 from screen 0.335, screen at - 10 / height to screen 0.335, screen at + 10 / height nohead lw 3 lc rgb color(1)
set label 13 "what the roof allows" at screen 0.344, at left font ",12" textcolor rgb ink

y(shift) = column("position") + shift
total(x) = column("work_ms") + column("wait_ms")
# Far below any roof it is neither memory nor arithmetic that takes the time.
share(x) = 20 * column("roof_ms") < total(0) ? "" : sprintf("%.0f %% of the %s roof", 100 * column("roof_ms") / total(0), strcol("bound"))

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        data using (column("work_ms")/2):"position":(0):"work_ms":(y(-0.36)):(y(0.36)) \
            with boxxyerror fs solid 0.85 noborder lc rgb color(0) notitle, \
        data using (column("work_ms")):"position":"work_ms":(total(0)):(y(-0.36)):(y(0.36)) \
            with boxxyerror fs solid 0.85 noborder lc rgb color(4) notitle, \
        data using (column("roof_ms")):(y(-0.44)):(0):(0.88) \
            with vectors nohead lw 3 lc rgb color(1) notitle, \
        data using (total(0)):"position":(share(0)) \
            with labels left offset 0.8,0 font ",11" textcolor rgb ink notitle
    set output
}
