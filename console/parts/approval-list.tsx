/** What waits for approval: what this user may decide about, what it has asked for itself, and how waits have ended lately. */
import { useEffect, useState } from 'preact/hooks'
import type { ViewProps } from '../route.ts'
import { formatMoment, formatUtc } from '../units.ts'
import { type EndedApproval, toDecide, type WaitingApproval } from '../waiting-approvals.ts'
import { ApprovalCard } from './approval-card.tsx'
import { Name } from './name.tsx'
import { Loading, State, Unreadable } from './state.tsx'

const COUNTED_MS = 1_000

export function ApprovalList({ consumer, fleet, approvals }: ViewProps) {
  const [, setTicks] = useState(0)
  // Each card says how long it still waits.
  useEffect(() => {
    const timer = setInterval(() => setTicks((before) => before + 1), COUNTED_MS)
    return () => clearInterval(timer)
  }, [])
  const { value: refusal } = approvals.refusal
  const { value: waiting } = approvals.waiting
  if (refusal !== undefined) return <Unreadable what="approvals" refusal={refusal} />
  if (waiting === undefined) return <Loading what="what waits for approval" />
  const cardOf = (one: WaitingApproval) => (
    <ApprovalCard key={one.id} consumer={consumer} approval={one} nowMs={fleet.nowMs} />
  )
  const own = waiting.filter(({ isOwn }) => isOwn)
  const others = toDecide(waiting)
  return (
    <>
      {others.map(cardOf)}
      {others.length === 0 ? (
        <p class="empty" role="status">
          Nothing waits for your approval.
        </p>
      ) : null}
      {own.length === 0 ? null : (
        <>
          <h2>What you have asked for</h2>
          <p class="note">Somebody else has to approve it: nobody approves what they have asked for themselves.</p>
          {own.map(cardOf)}
        </>
      )}
      <Ends ends={approvals.ends.value} />
    </>
  )
}

/** The place is always there, so that those who listen to the page hear what comes into it. */
function Ends({ ends }: { readonly ends: readonly EndedApproval[] }) {
  return (
    <div role="status">
      {ends.length === 0 ? null : (
        <section class="card" aria-label="Decided">
          <div class="head">
            <h2>Decided</h2>
            <p class="note">since the page was opened</p>
          </div>
          <ul class="decided">
            {ends.map((end) => (
              <li key={end.id}>
                <State
                  look={end.state === 'approved' ? 'good' : 'gone'}
                  text={end.by === '' ? end.state : `${end.state} by ${end.by}`}
                  detail={end.reason}
                />
                <span>
                  <span class="code">
                    <Name text={end.control} />
                  </span>{' '}
                  for <bdi>{end.asker}</bdi>, <time title={formatUtc(end.time)}>{formatMoment(end.time)}</time>
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  )
}
