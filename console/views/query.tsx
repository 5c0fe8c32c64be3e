/** Expressions of Prometheus' language over the history, one below the other, each as a table or as a chart. The URL has them all. */
import { useMemo, useRef, useState } from 'preact/hooks'
import type { ExpressionResult, ExpressionSeries } from '../../client/browser.ts'
import { Boards } from '../board.ts'
import { BrowserStorage } from '../browser-storage.ts'
import { linkInTime } from '../chart-time.ts'
import { Completion } from '../completion.ts'
import {
  type AskedExpression,
  type Evaluation,
  expressionArgs,
  expressionsOf,
  MAX_QUERIES,
  type Showing,
  seriesText,
  useEvaluation,
} from '../expressions.ts'
import { ChartControls } from '../parts/chart-controls.tsx'
import { type ChartPage, useChartPage } from '../parts/chart-page.ts'
import { ExpressionChart, followedRange } from '../parts/expression-chart.tsx'
import { ExpressionField, type ExpressionText } from '../parts/expression-field.tsx'
import { Name } from '../parts/name.tsx'
import { type Column, PagedTable } from '../parts/table.tsx'
import { numberText } from '../promql-names.ts'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount, formatDuration } from '../units.ts'

const ROWS = 50

export function QueryView({ consumer, fleet, router }: ViewProps) {
  const { args } = router.route.value
  const page = useChartPage(consumer, fleet, router)
  const completion = useMemo(() => new Completion(consumer), [consumer])
  const asked = expressionsOf(args)
  /** Of each query a number that stays, so that its field does when another one is removed. */
  const keys = useRef<number[]>([])
  while (keys.current.length < asked.length) keys.current.push((keys.current.at(-1) ?? 0) + 1)
  keys.current.length = asked.length
  const show = (changed: readonly AskedExpression[]): void =>
    router.replace(linkInTime(linkTo('query', '', expressionArgs(changed)), args))
  const changeAt = (at: number, changed: AskedExpression): void =>
    show(asked.map((one, index) => (index === at ? changed : one)))
  const removeAt = (at: number): void => {
    keys.current.splice(at, 1)
    show(asked.filter((_, index) => index !== at))
  }
  if (page.isRemembered.value === false) {
    return (
      <>
        <header>
          <h1>Query</h1>
        </header>
        <p class="empty">This server has no history to ask, or your role may not read it.</p>
      </>
    )
  }
  return (
    <>
      <header>
        <h1>Query</h1>
        <p class="note">PromQL over the history. The URL of this page has the queries.</p>
      </header>
      <div class="board-controls">
        <ChartControls page={page} />
      </div>
      {asked.map((one, at) => (
        <QueryCard
          key={keys.current[at]}
          consumer={consumer}
          page={page}
          completion={completion}
          label={`Expression ${at + 1}`}
          asked={one}
          onChange={(changed) => changeAt(at, changed)}
          onRemove={asked.length === 1 ? undefined : () => removeAt(at)}
        />
      ))}
      {asked.length >= MAX_QUERIES ? null : (
        <p class="buttons">
          <button type="button" onClick={() => show([...asked, { expr: '', show: asked.at(-1)?.show ?? 'table' }])}>
            Add a query
          </button>
        </p>
      )}
    </>
  )
}

interface QueryCardProps extends Pick<ViewProps, 'consumer'> {
  readonly page: ChartPage
  readonly completion: Completion
  readonly label: string
  readonly asked: AskedExpression
  readonly onChange: (asked: AskedExpression) => void
  readonly onRemove: (() => void) | undefined
}

function QueryCard({ consumer, page, completion, label, asked, onChange, onRemove }: QueryCardProps) {
  const { expr, show } = asked
  const field = useRef<ExpressionText>(null)
  const [round, setRound] = useState(0)
  // A table stands still until somebody asks again, unless the page shows a time that is over.
  const time = show === 'chart' ? followedRange(page) : { at: page.time.value.at }
  const evaluation = useEvaluation(consumer, expr, time, round)
  const run = (text: string): void => {
    if (text.trim() !== expr) onChange({ expr: text.trim(), show })
    setRound((before) => before + 1)
  }
  const choose = (chosen: Showing): void => onChange({ expr: field.current?.text.trim() ?? expr, show: chosen })
  return (
    <section class="card query" aria-label={label}>
      <div class="padded">
        <ExpressionField
          label={label}
          expr={expr}
          completion={completion}
          problem={evaluation.problem}
          onRun={run}
          field={field}
        />
        <p class="buttons">
          <button type="button" class="first" onClick={() => run(field.current?.text ?? expr)}>
            Run
          </button>
          <span class="choices">
            {(['table', 'chart'] as const).map((one) => (
              <button key={one} type="button" class="plain" aria-pressed={show === one} onClick={() => choose(one)}>
                {one === 'table' ? 'Table' : 'Chart'}
              </button>
            ))}
          </span>
          {expr === '' || evaluation.problem !== undefined || !isDrawable(evaluation.result, show) ? null : (
            <AddToBoard expr={expr} />
          )}
          {onRemove === undefined ? null : (
            <button type="button" class="plain" aria-label={`Remove ${label.toLowerCase()}`} onClick={onRemove}>
              ×
            </button>
          )}
        </p>
      </div>
      <Outcome evaluation={evaluation} />
      {evaluation.result === undefined ? null : show === 'chart' && evaluation.result.type === 'matrix' ? (
        <ExpressionChart page={page} result={evaluation.result} losses={evaluation.losses} expr={expr} />
      ) : (
        <ResultTable result={evaluation.result} expr={expr} />
      )}
    </section>
  )
}

/** What there is, how long it took, and what is wrong. The place is always there, so that readers of screens hear what comes into it. */
function Outcome({ evaluation: { result, problem, isBusy, elapsedMs } }: { readonly evaluation: Evaluation }) {
  return (
    <>
      <p class="note outcome" role="status">
        {isBusy && result === undefined ? 'Asking …' : null}
        {result === undefined ? null : summaryOf(result, elapsedMs)}
      </p>
      {problem === undefined ? null : (
        <p class="empty problem" role="alert">
          <bdi>{problem.reason}</bdi>
        </p>
      )}
      {[...(result?.warnings ?? []), ...(result?.infos ?? [])].map((remark) => (
        <p key={remark} class="note remark">
          <span class="shape attention" aria-hidden="true">
            ◆
          </span>{' '}
          <bdi>{remark}</bdi>
        </p>
      ))}
    </>
  )
}

function summaryOf({ series, samples, took }: ExpressionResult, elapsedMs: number): string {
  const counted = (count: number, one: string): string => `${formatCount(count)} ${one}${count === 1 ? '' : 's'}`
  return [
    series.length === 1 ? '1 series' : `${formatCount(series.length)} series`,
    `${counted(samples, 'sample')} read`,
    `evaluated in ${formatDuration(took / 1e6)}, here after ${formatDuration(elapsedMs / 1000)}`,
  ].join(' · ')
}

interface Row {
  readonly key: number
  readonly series: ExpressionSeries
}

function ResultTable({ result, expr }: { readonly result: ExpressionResult; readonly expr: string }) {
  const { type, series, text } = result
  if (type === 'string') return <p class="padded code">{JSON.stringify(text)}</p>
  const columns: readonly Column<Row>[] = [
    { title: 'Series', cellLook: 'code', cell: ({ series: one }) => <Name text={seriesText(one) || expr} max={200} /> },
    { title: 'Value', look: 'number', cell: ({ series: { values } }) => valuesText(values) },
  ]
  const rows = series.map((one, key): Row => ({ key, series: one }))
  return (
    <PagedTable
      rows={rows}
      page={ROWS}
      keyOf={({ key }) => key}
      columns={columns}
      empty={<p class="empty">No series has a value at this time.</p>}
    />
  )
}

/** Of a range the last one, with how many there are. */
function valuesText(values: readonly number[]): string {
  const value = values.at(-1)
  const last = value === undefined ? '' : numberText(value)
  return values.length > 1 ? `${last} (last of ${formatCount(values.length)})` : last
}

/** Texts, and ranges of samples at one time, have no values at the steps of a chart. */
function isDrawable(result: ExpressionResult | undefined, show: Showing): boolean {
  return result === undefined || show === 'chart' || result.type === 'vector' || result.type === 'scalar'
}

function AddToBoard({ expr }: { readonly expr: string }) {
  const [state, setState] = useState<{ readonly expr: string; readonly problem: string }>()
  if (state?.expr !== expr) {
    const pin = (): void => setState({ expr, problem: new Boards(new BrowserStorage()).pin({ lines: [], expr }) })
    return (
      <button type="button" onClick={pin}>
        Add to board
      </button>
    )
  }
  return (
    <span role="status" class={state.problem === '' ? 'note' : 'problem'}>
      {state.problem === '' ? (
        <>
          added to the <a href={linkTo('board')}>board</a>
        </>
      ) : (
        state.problem
      )}
    </span>
  )
}
