/**
 * `npm run bench -- NAME --against COMMIT`: the benchmark on this tree, as it is on the disk, and on another commit, in
 * `--pairs` (5) of runs that follow each other, every second pair in reverse order. Each tree runs its own benchmark on its
 * own build; the commit gets a temporary worktree, which is removed at the end and after Ctrl-C.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { addTree, HERE, removeTree, run, type Surroundings } from '../support/commit-tree.ts'
import { type Figures, figuresIn, type Ratios, ratiosOf, type Spreads, shownSpread, spreadsOf } from './ratios.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface Comparison {
  readonly commit: string
  readonly pairs: number
  /** The options of the benchmark itself. */
  readonly options: readonly string[]
}

/** What `--against` and `--pairs` ask for; undefined if there is no `--against`. */
export function comparisonIn(args: string[]): Comparison | undefined {
  const text = { type: 'string' } as const
  const { values, tokens } = parseArgs({ args, options: { against: text, pairs: text }, strict: false, tokens: true })
  if (values['against'] === undefined) return undefined
  const { against: commit, pairs = '5' } = values
  if (typeof commit !== 'string') throw new Error('--against: the name of a commit is missing')
  return { commit, pairs: pairsOf(pairs), options: othersIn(args, tokens, ['against', 'pairs']) }
}

/** What was given for `--pairs`; true if that was nothing. */
export function pairsOf(given: string | boolean): number {
  const pairs = given === true ? Number.NaN : Number(given)
  if (!(Number.isInteger(pairs) && pairs >= 1)) throw new Error(`--pairs ${given}: a number of at least 1 is needed`)
  return pairs
}

/** A token of parseArgs, as far as it is looked at. */
interface Token {
  readonly kind: string
  readonly index: number
  readonly name?: string
  readonly inlineValue?: boolean | undefined
}

/** The arguments that do not belong to these options. */
export function othersIn(args: string[], tokens: readonly Token[], names: readonly string[]): string[] {
  const ours = new Set<number>()
  for (const { kind, name = '', index, inlineValue } of tokens) {
    if (kind !== 'option' || !names.includes(name)) continue
    ours.add(index)
    if (inlineValue === false) ours.add(index + 1)
  }
  return args.filter((_, index) => !ours.has(index))
}

/** Prints the ratios of each pair, and gives their medians and spreads. */
export async function compare(name: string, { commit, pairs, options }: Comparison): Promise<object> {
  const ratios = await withCommit(commit, (inPairs) => inPairs(name, options, pairs))
  return { against: commit, pairs, ratios }
}

/** Runs a benchmark on both trees in turn, prints the ratios of each pair, and gives their medians and spreads. */
export type InPairs = (name: string, options: readonly string[], pairs: number) => Promise<Spreads>

/** Builds the commit and gives `measure` what runs benchmarks on it and on this tree. */
export async function withCommit<T>(commit: string, measure: (inPairs: InPairs) => Promise<T>): Promise<T> {
  const interrupted = new AbortController()
  const interrupt = (signal: NodeJS.Signals): void => interrupted.abort(signal)
  for (const signal of SIGNALS) process.on(signal, interrupt)
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-against-'))
  const tree = join(directory, 'tree')
  const here: Surroundings = {
    cwd: HERE,
    env: { ...process.env, TMPDIR: mkdtempSync(join(directory, 'tmp-')), BENCH_WITHOUT_LIMIT: '1' },
    interrupted: interrupted.signal,
  }
  try {
    console.log(`building ${commit}`)
    await addTree(commit, tree, here)
    return await measure((name, options, pairs) => inPairs(here, { ...here, cwd: tree }, name, options, pairs))
  } finally {
    await removeTree(tree)
    // Servers that were ended a moment ago may still write.
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    for (const signal of SIGNALS) process.off(signal, interrupt)
    if (interrupted.signal.aborted) process.kill(process.pid, interrupted.signal.reason)
  }
}

async function inPairs(
  here: Surroundings,
  there: Surroundings,
  name: string,
  options: readonly string[],
  pairs: number,
): Promise<Spreads> {
  const bench = async (surroundings: Surroundings): Promise<Figures> =>
    figuresIn(name, await run(surroundings, 'node', '--import', 'tsx', 'test/bench/main.ts', name, ...options))
  const all: Ratios[] = []
  for (let pair = 1; pair <= pairs; pair++) {
    const first = pair % 2 === 1 ? await bench(there) : undefined
    const ours = await bench(here)
    const ratios = ratiosOf(ours, first ?? (await bench(there)))
    if (Object.keys(ratios).length === 0) throw new Error(`${name} prints no rate that could be compared`)
    all.push(ratios)
    console.log(`pair ${pair}: ${listed(ratios, (ratio) => ratio.toFixed(3))}`)
  }
  const spreads = spreadsOf(all)
  console.log(`median: ${listed(spreads, (spread) => shownSpread(spread, 3))}`)
  return spreads
}

function listed<T>(figures: Readonly<Record<string, T>>, show: (figure: T) => string): string {
  return Object.entries(figures)
    .map(([name, figure]) => `${name} ${show(figure)}`)
    .join(', ')
}
