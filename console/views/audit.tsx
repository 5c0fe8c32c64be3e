/** The audit log: who did what, from where and with what outcome, by filters, and whether its chain of hashes is whole. */
import { useEffect, useMemo } from 'preact/hooks'
import { AuditLog, type AuditRecord, type AuditState } from '../audit-log.ts'
import { Name } from '../parts/name.tsx'
import { Loading, State, Unreadable } from '../parts/state.tsx'
import { type Column, PagedTable } from '../parts/table.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount, formatTime, formatUtc, UNKNOWN } from '../units.ts'

const PAGE = 100
const GOOD_OUTCOMES: readonly string[] = ['ok', 'started', 'added', 'dry-run', 'repeat']
const filters = ['actor', 'action', 'object'] as const
const titles: Readonly<Record<(typeof filters)[number], string>> = { actor: 'User', action: 'Action', object: 'Object' }
/** How far back, by the words of the URL. */
const spans: Readonly<Record<string, readonly [title: string, hours: number]>> = {
  '1h': ['the last hour', 1],
  '24h': ['the last 24 hours', 24],
  '7d': ['the last 7 days', 168],
}

export function AuditView({ consumer, fleet, router }: ViewProps) {
  const { args } = router.route.value
  const isWhole = args.get('whole') === '1'
  const log = useMemo(() => new AuditLog(consumer, isWhole), [consumer, isWhole])
  useEffect(() => {
    void log.begin()
    return () => log.end()
  }, [log])
  const state = log.state.value
  if (state === undefined) return <Loading what="the audit log" />
  if (state.refusal !== undefined) {
    return (
      <>
        <header>
          <h1>Audit</h1>
        </header>
        <Unreadable what="audit log" refusal={state.refusal} />
      </>
    )
  }
  const linkWith = (name: string, value: string): string => {
    const next = new URLSearchParams(args)
    if (value === '') next.delete(name)
    else next.set(name, value)
    return linkTo('audit', '', Object.fromEntries(next))
  }
  return (
    <>
      <header>
        <h1>Audit</h1>
      </header>
      <Chain state={state} isWhole={isWhole} wholeLink={linkWith('whole', '1')} />
      <section class="card" aria-label="Audit log">
        <search class="filters">
          {filters.map((name) => (
            <label key={name}>
              {titles[name]}
              <input
                name={name}
                value={args.get(name) ?? ''}
                autocomplete="off"
                spellcheck={false}
                onInput={({ currentTarget }) => router.replace(linkWith(name, currentTarget.value))}
              />
            </label>
          ))}
          <Since value={args.get('since') ?? ''} onChange={(value) => router.replace(linkWith('since', value))} />
          <Until value={args.get('until') ?? ''} onChange={(value) => router.replace(linkWith('until', value))} />
          {args.has('result') ? (
            <p class="note">
              of result {args.get('result')} <a href={linkWith('result', '')}>of all</a>
            </p>
          ) : null}
        </search>
        <Records key={args.toString()} state={state} args={args} nowMs={fleet.nowMs} />
      </section>
    </>
  )
}

interface TimeProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

function Since({ value, onChange }: TimeProps) {
  const at = Date.parse(value)
  return (
    <label>
      Since
      <select name="since" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">any time</option>
        {Object.entries(spans).map(([span, [title]]) => (
          <option key={span} value={span}>
            {title}
          </option>
        ))}
        {Number.isNaN(at) ? null : <option value={value}>{formatTime(at * 1000)}</option>}
      </select>
    </label>
  )
}

/** In the URL it is UTC. */
function Until({ value, onChange }: TimeProps) {
  const at = Date.parse(value)
  const local = Number.isNaN(at) ? '' : new Date(at).toLocaleString('sv').replace(' ', 'T')
  return (
    <label>
      Until
      <input
        type="datetime-local"
        name="until"
        step={1}
        value={local}
        onChange={({ currentTarget }) =>
          onChange(currentTarget.value === '' ? '' : new Date(currentTarget.value).toISOString())
        }
      />
    </label>
  )
}

interface ChainProps {
  readonly state: AuditState
  readonly isWhole: boolean
  readonly wholeLink: string
}

/** What the hashes say of the records that were read. */
function Chain({ state, isWhole, wholeLink }: ChainProps) {
  const { first, last, newest, verified, broken, records } = state
  if (newest === undefined) {
    return <p class="note">You see the records of your tenant. Only an admin sees all, and so can verify the log.</p>
  }
  const [newestRecord] = records
  const isReading = last < newest || verified < last
  const hash = newestRecord === undefined ? '' : [...newestRecord.hash].map(hexOf).join('')
  return (
    <section class="card chain" aria-label="Verification">
      <div class="head">
        {broken === '' ? (
          <State
            look={isReading ? 'gone' : 'good'}
            text={
              isReading
                ? `reading: ${formatCount(last)} of ${formatCount(newest)}`
                : last === 0
                  ? 'the log is empty'
                  : `records ${formatCount(first)} to ${formatCount(last)} are unbroken`
            }
            detail="Each hash follows from the record and the hash before it; this page has computed them itself."
          />
        ) : (
          <State look="attention" text="the log is not intact" detail={broken} />
        )}
        <p class="choices">{isWhole || first <= 1 ? null : <a href={wholeLink}>read and verify the whole log</a>}</p>
      </div>
      {hash === '' || isReading ? null : (
        <p class="padded note hash">
          Note it elsewhere, for <code>cinnabar audit verify --from</code>:{' '}
          <code>
            {last}:{hash}
          </code>
        </p>
      )}
    </section>
  )
}

function hexOf(byte: number): string {
  return byte.toString(16).padStart(2, '0')
}

interface RecordsProps {
  readonly state: AuditState
  readonly args: URLSearchParams
  readonly nowMs: number
}

function Records({ state, args, nowMs }: RecordsProps) {
  const since = sinceOf(args.get('since') ?? '', nowMs)
  const until = Date.parse(args.get('until') ?? '') * 1000
  const found = state.records.filter(
    (record) => record.time >= since && !(record.time > until) && isMatch(record, args),
  )
  const isFiltered = found.length < state.records.length
  return (
    <PagedTable
      look="audit stacked"
      rows={found}
      keyOf={({ number }) => number}
      columns={COLUMNS}
      page={PAGE}
      status={(shown) => (
        <p class="padded note" role="status">
          {isFiltered ? `${formatCount(found.length)} of ` : ''}
          {formatCount(state.records.length)} records that were read
          {shown < found.length ? `; the newest ${formatCount(shown)} are shown` : ''}
        </p>
      )}
      empty={<p class="empty">No record matches.</p>}
    />
  )
}

const COLUMNS: readonly Column<AuditRecord>[] = [
  { title: 'Number', look: 'number wide', cell: ({ number }) => number },
  {
    title: 'Time',
    cellLook: 'code',
    cell: ({ time }) => (
      <time title={formatUtc(time)}>
        {new Date(time / 1000).toLocaleDateString('sv')} {formatTime(time)}
      </time>
    ),
  },
  {
    title: 'Action',
    cell: ({ action, outcome }) => (
      <State look={GOOD_OUTCOMES.includes(outcome) ? 'good' : 'attention'} text={action} detail={outcome} />
    ),
  },
  { title: 'User', cell: ({ actor }) => (actor === '' ? UNKNOWN : <Name text={actor} />) },
  { title: 'Address', look: 'wide', cellLook: 'code', cell: ({ address }) => address },
  {
    title: 'What',
    cellLook: 'whole',
    cell: ({ object, args, detail }) => (
      <>
        <span class="code">
          <Name text={object} />
        </span>
        <small class="more">
          <bdi>{[args === '{}' ? '' : args, detail].filter(Boolean).join(' ')}</bdi>
        </small>
      </>
    ),
  },
]

/** Microseconds since 1970; 0 if any time is meant. */
function sinceOf(text: string, nowMs: number): number {
  const span = Object.hasOwn(spans, text) ? spans[text] : undefined
  const ms = span === undefined ? Date.parse(text) : nowMs - span[1] * 3_600_000
  return Number.isFinite(ms) ? ms * 1000 : 0
}

function isMatch(record: AuditRecord, args: URLSearchParams): boolean {
  const result = args.get('result')
  // The detail of what concerns a result begins with its id.
  if (result !== null && record.detail.split(':', 1)[0] !== `result ${result}`) return false
  return filters.every((name) => record[name].toLowerCase().includes((args.get(name) ?? '').toLowerCase()))
}
