# SPDX-License-Identifier: MIT
#
# gate_rivals.gp - false alarms and alarms that are due, of each rule on each machine

set xtics 0,20,100
set ytics () noenhanced
do for [i=1:n_rows] { set ytics add (literal(rows[i]) i-1) }
set grid xtics noytics lc rgb faint lw 1 lt 1
do for [i=1:n_rows-1] { set arrow i from x_min, i-0.5 to x_max, i-0.5 nohead lc rgb faint lw 1 }

# The last one is ours.
hue(i) = i == n_series - 1 ? "#000000" : color(i)

# Rules of one row stand one above the other.
spot(i) = (i - (n_series - 1) / 2.0) * 0.8 / n_series

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    set label 1 title_text
    set label 2 subtitle_text
    set lmargin at screen 0.15
    set rmargin at screen 0.435
    set format y "%s"
    set xlabel "equal builds: false alarms, %" textcolor rgb ink
    unset key
    plot for [i=0:n_series-1] data using (column("series") == i ? column("false_percent") : NaN):(column("row") + spot(i)) \
        with points pt solid(i) ps 1.5*point lc rgb hue(i) notitle
    set label 1 ""
    set label 2 ""
    set lmargin at screen 0.455
    set rmargin at screen 0.74
    set format y ""
    do for [i=1:n_rows] { set ytics add ("" i-1) }
    set xlabel sprintf("B slower by %g %%: alarms, %", sharp) textcolor rgb ink
    set key outside right center vertical Left reverse noenhanced samplen 1.6 spacing 1.35 textcolor rgb ink
    plot for [i=0:n_series-1] data using (column("series") == i ? column("seen_percent") : NaN):(column("row") + spot(i)) \
        with points pt solid(i) ps 1.5*point lc rgb hue(i) title series[i+1]
    do for [i=1:n_rows] { set ytics add (literal(rows[i]) i-1) }
    unset multiplot
    set output
}
