# 24 pictures made small by ImageMagick, two at a time.
# needs: imagemagick
for n in $(seq 24); do convert -size 1600x1200 -seed "$n" plasma:fractal "picture$n.jpg"; done
record -- sh -c 'ls picture*.jpg | xargs -P 2 -I{} convert {} -resize 320x240 small-{}'
