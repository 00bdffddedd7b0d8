# A film of 640 x 360 at 30 pictures a second, decoded in real time for eight seconds.
# needs: ffmpeg
ffmpeg -v error -f lavfi -i testsrc2=size=640x360:rate=30 -f lavfi -i sine=440 -t 8 -c:v libx264 -c:a aac -y film.mp4
record --timers -- ffmpeg -v error -threads 2 -re -i film.mp4 -f null -
