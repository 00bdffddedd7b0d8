# javac compiles a program that makes much garbage, and java runs it: JIT compilers and collectors beside the work.
# needs: default-jdk-headless
cat >Work.java <<'JAVA'
import java.util.*;
import java.util.stream.*;
public class Work {
    record Sale(String item, int shop, double price) {}
    public static void main(String[] all) {
        double sum = 0;
        for (int round = 0; round < 12; round++) {
            final int r = round;
            List<Sale> sales = IntStream.range(0, 60_000)
                .mapToObj(n -> new Sale("item " + n * 7919L % 5003, n * 31 % 97, (n + r) * 13 % 1009)).toList();
            Map<String, Double> mean = sales.stream().collect(Collectors.groupingBy(Sale::item, Collectors.averagingDouble(Sale::price)));
            sum += mean.values().stream().mapToDouble(d -> d).sum();
        }
        System.out.println(sum);
    }
}
JAVA
record -- sh -c 'javac Work.java && java -Xmx256m Work >/dev/null'
