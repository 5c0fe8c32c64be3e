/**
 * `npm run promqltest`: the cases of Prometheus' own tests, in the folder that PROMQL_TESTS names, over series in memory and then
 * over a history on the disk. They are not part of this repository; without the folder there is nothing to run. What needs native
 * histograms or a feature flag is passed over and counted.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PromqlError } from '../../../promql/errors.ts'
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import { LabelSet, METRIC_NAME_LABEL } from '../../../promql/label-set.ts'
import { MemorySource, type MemoryValue } from '../../../promql/memory-source.ts'
import { HISTOGRAM } from '../../../promql/parse/series-notation.ts'
import type { SeriesSource, SourceSeries, Stream } from '../../../promql/series-source.ts'
import { StoredSource } from '../stored-source.ts'
import { expectsHistograms, judge } from './judge.ts'
import { type Load, parseScript } from './script.ts'

/** So many of the 1,281 have to pass at least. */
const LEAST_PASSED = 860

interface FloatSource extends SeriesSource {
  add: MemorySource['add']
}

/** Where the samples are. */
interface Place {
  readonly name: string
  /** Another one without samples. */
  readonly begin: () => FloatSource & { settle?(): void; end?(): void }
}

const PLACES: readonly Place[] = [
  { name: 'in memory', begin: () => new MemorySource() },
  { name: 'in a history', begin: () => new StoredSource() },
]

/** A source that notices when native histograms are read. */
class ScriptSource implements SeriesSource {
  readonly #floats: ReturnType<Place['begin']>
  #loads = 0
  readonly #histograms = new MemorySource()
  hasReadHistograms = false

  constructor(place: Place) {
    this.#floats = place.begin()
  }

  end(): void {
    this.#floats.end?.()
  }

  load({ stepMs, hasNativeTwins, series }: Load): void {
    for (const { labels, values } of series) {
      const at = values.map((value, index) => [index * stepMs, value] as const)
      this.#floats.add(
        labels,
        at.filter((sample): sample is readonly [number, MemoryValue] => isFloat(sample[1])),
      )
      const histograms = at.filter(([, value]) => value === HISTOGRAM).map(([ms]) => [ms, 1] as const)
      if (histograms.length > 0) this.#histograms.add(labels, histograms)
      const name = labels.metricName
      if (!hasNativeTwins || !name.endsWith('_bucket')) continue
      const twin = labels.with([
        [METRIC_NAME_LABEL, name.slice(0, -'_bucket'.length)],
        ['le', ''],
      ])
      this.#histograms.add(
        LabelSet.of(twin),
        at.map(([ms]) => [ms, 1] as const),
      )
    }
    // The samples of every other one stay in the head, where the newest are.
    if (this.#loads++ % 2 === 0) this.#floats.settle?.()
  }

  *select(matchers: readonly LabelMatcher[], fromMs: number, toMs: number): Stream<SourceSeries> {
    for (const found of this.#histograms.select(matchers, fromMs, toMs))
      if (found !== undefined) this.hasReadHistograms = true
    yield* this.#floats.select(matchers, fromMs, toMs)
  }
}

function isFloat(value: unknown): value is MemoryValue {
  return typeof value === 'number' || value === 'stale'
}

function run(path: string, place: Place): number {
  const passedOver = new Map<string, number>()
  const passOver = (reason: string): void => void passedOver.set(reason, (passedOver.get(reason) ?? 0) + 1)
  let [all, passed, passedBeside, failed] = [0, 0, 0, 0]
  for (const file of readdirSync(path)
    .filter((name) => name.endsWith('.test'))
    .sort()) {
    let source = new ScriptSource(place)
    for (const command of parseScript(readFileSync(join(path, file), 'utf8'))) {
      if (command.kind === 'clear') {
        source.end()
        source = new ScriptSource(place)
      } else if (command.kind === 'load') source.load(command)
      else {
        all++
        source.hasReadHistograms = false
        let problem: string | undefined
        try {
          problem = judge(command, source)
        } catch (error) {
          if (!(error instanceof PromqlError) || error.feature === undefined) throw error
          passOver(error.feature)
          continue
        }
        const hasHistograms = source.hasReadHistograms || expectsHistograms(command)
        // Where they have no part in the result, as in a filter of numbers, the result is right without them.
        if (problem === undefined) {
          passed++
          if (hasHistograms) passedBeside++
        } else if (hasHistograms) passOver('native histograms')
        else {
          failed++
          console.log(`${file}:${command.line}: ${command.text}\n    ${problem}`)
        }
      }
    }
    source.end()
  }
  console.log(`${place.name}:`)
  for (const [reason, count] of passedOver) console.log(`passed over, ${reason}: ${count}`)
  console.log(`passed, native histograms have no part in the result: ${passedBeside}`)
  console.log(`${all} evaluations: ${passed} passed, ${failed} failed`)
  return failed > 0 || passed < LEAST_PASSED ? 1 : 0
}

const folder = process.env['PROMQL_TESTS'] ?? new URL('../../../../shared/promqltest', import.meta.url).pathname
if (existsSync(folder)) process.exitCode = Math.max(...PLACES.map((place) => run(folder, place)))
else console.log(`no cases to run: ${folder} does not exist; PROMQL_TESTS names the folder with Prometheus' test files`)
