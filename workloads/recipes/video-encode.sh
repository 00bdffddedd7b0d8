# Five seconds of a made-up picture and sound, encoded as H.264 and AAC by two threads.
# needs: ffmpeg
record -- ffmpeg -v error -f lavfi -i testsrc2=size=640x360:rate=30 -f lavfi -i sine=440 -t 5 \
    -c:v libx264 -preset veryfast -threads 2 -c:a aac -y out.mp4
