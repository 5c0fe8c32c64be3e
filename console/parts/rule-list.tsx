/** The rules, by group: what they ask, whether they can be evaluated, when that was done last, and how long it took. */
import { useState } from 'preact/hooks'
import { useRules } from '../alert-lists.ts'
import type { RuleLine } from '../alerts.ts'
import { lengthText } from '../chart-time.ts'
import { expressionArgs } from '../expressions.ts'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount, formatDuration, formatUtc } from '../units.ts'
import { Name } from './name.tsx'
import { Search } from './search.tsx'
import { Loading, State, Unreadable } from './state.tsx'
import { type Column, PagedTable } from './table.tsx'

/** Rules of a group, and groups, that are shown at first. */
const PAGE = 50
const MOST_GROUPS = 30

interface Group {
  readonly key: string
  readonly name: string
  readonly file: string
  readonly interval: number
  readonly rules: readonly RuleLine[]
}

export function RuleList({ consumer, fleet, router, identity }: ViewProps) {
  const rules = useRules(consumer, identity)
  const [pages, setPages] = useState(1)
  const { args } = router.route.value
  const text = args.get('match') ?? ''
  const onlyFailing = args.get('show') === 'failing'
  if (rules.refusal !== undefined) return <Unreadable what="rules" refusal={rules.refusal} />
  if (rules.lines === undefined) return <Loading what="the rules" />
  const all = rules.lines
  const failing = all.filter(({ health }) => health === 'err')
  const found = (onlyFailing ? failing : all).filter((rule) => isMeant(rule, text))
  const groups = groupsOf(found)
  const linkWith = (match: string, show: string): string =>
    linkTo('alerts', 'rules', { ...(match !== '' && { match }), ...(show !== '' && { show }) })
  return (
    <>
      <search class="alert-filter">
        <p class="choices">
          <a href={linkWith(text, '')} aria-current={onlyFailing ? undefined : 'true'}>
            all {formatCount(all.length)}
          </a>
          <a href={linkWith(text, 'failing')} aria-current={onlyFailing ? 'true' : undefined}>
            failing {formatCount(failing.length)}
          </a>
        </p>
        <Search
          label="Search rules"
          placeholder="Part of a name or an expression"
          text={text}
          onText={(value) => router.replace(linkWith(value, onlyFailing ? 'failing' : ''))}
        />
      </search>
      {rules.hasMore ? <p class="note">There are more rules than are shown here.</p> : null}
      {found.length === 0 ? (
        <p class="empty" role="status">
          {all.length === 0
            ? 'No rules are evaluated: the configuration names none, and nobody has put any.'
            : 'No rule matches.'}
        </p>
      ) : null}
      {groups.slice(0, pages * MOST_GROUPS).map(({ key, name, file, interval, rules: lines }) => (
        <section key={key} class="card rules" aria-label={`Group ${name}`}>
          <div class="head">
            <h2>
              <Name text={name} />
            </h2>
            <p class="note">
              <Name text={file} max={64} />, every {lengthText(interval)}
            </p>
          </div>
          <PagedTable
            look="stacked"
            rows={lines}
            keyOf={(rule) => rule.key}
            columns={columnsFor(fleet.nowMs / 1000)}
            page={PAGE}
          />
        </section>
      ))}
      {groups.length > pages * MOST_GROUPS ? (
        <p class="buttons">
          <button type="button" onClick={() => setPages(pages + 1)}>
            Show {formatCount(Math.min(MOST_GROUPS, groups.length - pages * MOST_GROUPS))} more groups
          </button>
        </p>
      ) : null}
    </>
  )
}

function isMeant({ name, expr, group }: RuleLine, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  return [name, expr, group].some((one) => one.toLowerCase().includes(wanted))
}

/** In the order of the rules. */
function groupsOf(rules: readonly RuleLine[]): readonly Group[] {
  const groups = new Map<string, Group & { readonly rules: RuleLine[] }>()
  for (const rule of rules) {
    const { file, group: name, interval } = rule
    const key = `${file}\n${name}`
    const group = groups.get(key) ?? { key, name, file, interval, rules: [] }
    group.rules.push(rule)
    groups.set(key, group)
  }
  return [...groups.values()]
}

const HEALTH = { ok: ['good', 'ok'], err: ['attention', 'fails'], unknown: ['gone', 'not yet'] } as const

function columnsFor(now: number): readonly Column<RuleLine>[] {
  return [
    {
      title: 'Rule',
      cell: ({ health, name, isAlert }) => {
        const [look, word] = HEALTH[health as keyof typeof HEALTH] ?? HEALTH.unknown
        return <State look={look} text={name} detail={isAlert ? word : `records, ${word}`} />
      },
    },
    {
      title: 'Expression',
      cellLook: 'whole code expr',
      cell: ({ expr, forSeconds, keepsSeconds, problem }) => (
        <>
          <a href={linkTo('query', '', expressionArgs([{ expr, show: 'chart' }]))}>
            <Name text={expr} max={600} />
          </a>
          {forSeconds > 0 ? <small class="more">for {formatDuration(forSeconds)}</small> : null}
          {keepsSeconds > 0 ? <small class="more">keeps firing for {formatDuration(keepsSeconds)}</small> : null}
          {problem === '' ? null : (
            <small class="more problem">
              <bdi>{problem}</bdi>
            </small>
          )}
        </>
      ),
    },
    { title: 'Alerts', cell: (rule) => <Alerts rule={rule} /> },
    {
      title: 'Evaluated',
      look: 'number',
      cell: ({ evaluated, took }) =>
        evaluated === 0 ? (
          'not yet'
        ) : (
          <time title={formatUtc(evaluated * 1e6)}>
            {formatDuration(Math.max(0, now - evaluated))} ago <small class="more">took {formatDuration(took)}</small>
          </time>
        ),
    },
  ]
}

function Alerts({ rule: { name, firing, pending, isAlert } }: { readonly rule: RuleLine }) {
  if (!isAlert) return null
  if (firing + pending === 0)
    return (
      <span class="note">
        none{' '}
        <a class="history" href={linkTo('alerts', 'history', { match: `alertname=${name}` })}>
          History <span class="unseen">of {name}</span>
        </a>
      </span>
    )
  const said = [firing > 0 ? `${firing} firing` : '', pending > 0 ? `${pending} pending` : ''].filter(Boolean)
  return <a href={linkTo('alerts', '', { match: `alertname=${name}` })}>{said.join(', ')}</a>
}
