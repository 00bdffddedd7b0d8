# Study 002's second test.
# needs: dbench
serve tbench_srv
sleep 0.5
record -- timeout 3 tbench -t 1 1
