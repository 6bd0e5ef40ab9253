# SPDX-License-Identifier: MIT
#
# cost_speed.gp - the price of a million tokens against decode speed, a mark a machine
#
# Right and below is better. Machines stand in the legend, since marks may lie close.

height = 800.0
eval frame
set xlabel "tokens per second, decoding (more is better)" textcolor rgb ink
set ylabel currency . " for a million tokens of answers (less is better)" textcolor rgb ink
set grid xtics ytics lc rgb faint lw 1 lt 1

row(i, v) = int(column(0)) == i ? v : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_machines-1] data using (row(i, column("tok_per_s"))):"cost":"lo":"hi":"cost_lo":"cost_hi" \
            with xyerrorbars lw 1.4 lc rgb color(i) pt solid(i) ps 1.7*point title names[i+1]
    set output
}
