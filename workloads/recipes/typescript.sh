# The TypeScript compiler checks a program of twelve modules: one busy JavaScript thread beside its garbage collector.
# needs: nodejs
npm install --silent --no-fund --no-audit typescript@5.9 >/dev/null
for n in $(seq 12); do
    cat >"module$n.ts" <<TS
export interface Item$n<T extends object> { id: number; value: T; next?: Item$n<T> }
export type Keys$n<T extends object> = { [K in keyof T as \`get\${Capitalize<string & K>}\`]: () => T[K] }
export function walk$n<T extends object>(item: Item$n<T>, see: (value: Keys$n<T>, at: number) => void): number {
  let n = 0
  for (let at: Item$n<T> | undefined = item; at; at = at.next) {
    const made = Object.fromEntries(Object.entries(at.value).map(([k, v]) => ['get' + k, () => v])) as Keys$n<T>
    see(made, n++)
  }
  return n
}
TS
done
for n in $(seq 12); do echo "import { walk$n } from './module$n'; walk$n({ id: $n, value: { a: 1, b: 'x' } }, v => v.getA())"; done >main.ts
record -- node node_modules/typescript/bin/tsc --noEmit --strict --lib es2022,dom main.ts
