# SPDX-License-Identifier: MIT
#
# token_run.gp - token times over the run, relative to the median of their point, and
# below them the CPU time that others took and the page faults, launch by launch

longest = 0
do for [i=1:n_series] {
    if (strlen(series[i]) > longest) { longest = strlen(series[i]) }
}
legend_width = 0.04 + 0.0077 * (longest < 15 ? 15 : longest)
n_columns = int(0.94 / legend_width) < 1 ? 1 : int(0.94 / legend_width)
n_lines = (n_series + 2 + n_columns - 1) / n_columns
head = 150.0
foot = 104.0 + 29.0 * n_lines
first = 420.0
lane = 120.0
gap = 44.0
height = head + first + 2 * (gap + lane) + foot
eval frame
unset key
set lmargin at screen 0.09
set rmargin at screen 0.97
y_bottom = y_min
y_top = y_max
is(i) = column("kind") == 0 && column("series") == i
x_if(condition) = condition ? column("minutes") : NaN
left(i) = 0.02 + legend_width * ((i - 1) % n_columns)
level(i) = (12 + 29.0 * (n_lines - 0.5 - (i - 1) / n_columns)) / height
decade(v) = 10 ** floor(log10(v))
tick_step(v) = v >= 3.5 * decade(v) ? 5 * decade(v) : v >= 1.5 * decade(v) ? 2 * decade(v) : decade(v)
taken = "#b42318"
others = "#b87a1b"

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    do for [i=1:n_series] {
        set label 1000+i "" at screen left(i), screen level(i) point pt 7 ps 1.2*point lc rgb color(i-1)
        set label 2000+i series[i] at screen left(i) + 0.012, screen level(i) left noenhanced textcolor rgb ink
    }
    do for [i=1:2] {
        set label 3000+i "" at screen left(n_series + i), screen level(n_series + i) point pt 5 ps 1.2*point lc rgb (i == 1 ? taken : others)
        who = i == 1 ? "CPU time stolen" : "of others"
        set label 4000+i who at screen left(n_series + i) + 0.012, screen level(n_series + i) left textcolor rgb ink
    }
    top = height - head
    set tmargin at screen top / height
    set bmargin at screen (top - first) / height
    set yrange [y_bottom:y_top]
    set logscale y 2
    set ytics (0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16)
    set format x ""
    set label 3 "time of a token, pass or run, relative to the median of its point (logarithmic)" at graph 0, graph 1 offset 0,0.8 left font ",12" textcolor rgb ink
    plot 1 with lines lw 1 lc rgb grey notitle, \
        for [i=0:n_series-1] data using (x_if(is(i))):"relative" with points pt 7 ps 0.5*point lc rgb color(i) notitle
    do for [i=1:n_series] { unset label 1000+i; unset label 2000+i }
    do for [i=1:2] { unset label 3000+i; unset label 4000+i }
    unset label 1
    unset label 2
    unset logscale y
    do for [panel=1:2] {
        top = top - (panel == 1 ? first : lane) - gap
        set tmargin at screen top / height
        set bmargin at screen (top - lane) / height
        set yrange [0:(panel == 1 ? most_taken : most_faults)]
        step = tick_step((panel == 1 ? most_taken : most_faults) / 2.2)
        set ytics step
        set format y "%.10g"
        what = panel == 1 ? "CPU time that others took, %" : "page faults and refaults per token"
        set label 3 what at graph 0, graph 1 offset 0,0.8 left font ",12" textcolor rgb ink
        if (panel == 2) { set format x "%.10g"; set xlabel "minutes since the run began" textcolor rgb ink }
        plot \
            data using (x_if(column("kind") == 1)):(0):"minutes":"end":(0):(panel == 1 ? column("others") + column("steal") : column("faults")) \
                with boxxyerror fs solid noborder lc rgb (panel == 1 ? others : grey) notitle, \
            data using (x_if(column("kind") == 1 && panel == 1)):(0):"minutes":"end":(0):"steal" \
                with boxxyerror fs solid noborder lc rgb taken notitle
    }
    unset label 3
    unset xlabel
    set format y "%.10g"
    unset multiplot
    set output
    eval frame
}
