/** One EXECUTE that waits for approval: the command, what its dry run has come to, and approve and refuse, or take it back. */
import { useRef, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { producersOf } from '../producers.ts'
import { formatDuration, formatMoment, formatUtc } from '../units.ts'
import type { WaitingApproval } from '../waiting-approvals.ts'
import { ConfirmDialog } from './confirm-dialog.tsx'
import { type Execution, useExecution } from './execution.ts'
import { Name } from './name.tsx'
import { State } from './state.tsx'
import { ValueOf, valueText } from './value-of.tsx'

interface ApprovalCardProps {
  readonly consumer: Consumer
  readonly approval: WaitingApproval
  /** By the clock of the server, milliseconds since 1970. */
  readonly nowMs: number
}

export function ApprovalCard({ consumer, approval, nowMs }: ApprovalCardProps) {
  const { control, asker, address, role, rule, asked, until, digest, isOwn } = approval
  const execution = useExecution(consumer)
  return (
    <article class="card approval" aria-label={`${control}, asked for by ${asker}`}>
      <div class="head">
        <h2 class="code">
          <Name text={control} />
        </h2>
        <p class="choices">
          <time title={formatUtc(until)}>ends in {formatDuration(Math.max(0, until / 1000 - nowMs) / 1000)}</time>
        </p>
      </div>
      <div class="approval-body">
        <Command approval={approval} />
        <p>
          {isOwn ? 'You have' : <bdi>{asker}</bdi>}
          {isOwn ? '' : ' has'} asked for it from <bdi>{address}</bdi>,{' '}
          <time title={formatUtc(asked)}>{formatMoment(asked)}</time>. The rule asks for the approval of the role{' '}
          <bdi class="code">{role}</bdi>
          {isOwn ? '.' : ', or of an admin.'}
        </p>
        {rule === '' ? null : (
          <p class="note code">
            <bdi>{rule}</bdi>
          </p>
        )}
        <p class="note code digest">digest {digest}</p>
      </div>
      <DryRun approval={approval} />
      <div class="actions">
        {isOwn ? null : <Approve consumer={consumer} approval={approval} execution={execution} />}
        <Refuse approval={approval} execution={execution} />
        <Outcome execution={execution} />
      </div>
    </article>
  )
}

/** The control with all its arguments. */
function Command({ approval: { args } }: Pick<ApprovalCardProps, 'approval'>) {
  if (args.length === 0) return <p class="note">Without arguments.</p>
  return (
    <dl class="arguments">
      {args.map(([name, value]) => (
        <div key={name}>
          <dt class="code">{name}</dt>
          <dd>
            <bdi>{valueText(value)}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  )
}

function DryRun({ approval: { dryRun } }: Pick<ApprovalCardProps, 'approval'>) {
  if (dryRun === undefined) return <p class="padded note">The dry run is running.</p>
  const { outcome, detail, value } = dryRun
  return (
    <div class="result">
      <div class="head">
        <State
          look={outcome === 'dry-run' ? 'good' : 'attention'}
          text={outcome === 'dry-run' ? 'dry run' : `dry run: ${outcome}`}
          detail={detail}
        />
      </div>
      <ValueOf value={value} />
    </div>
  )
}

interface DecisionProps {
  readonly approval: WaitingApproval
  readonly execution: Execution
}

function Approve({ consumer, approval, execution }: DecisionProps & Pick<ApprovalCardProps, 'consumer'>) {
  const dialog = useRef<HTMLDialogElement>(null)
  const { id, control, asker, dryRun } = approval
  // Nobody approves what nobody has seen.
  const isHeld = dryRun === undefined || execution.run.kind === 'running'
  return (
    <>
      <button
        type="button"
        class="first"
        aria-label={`Approve ${control}`}
        aria-disabled={isHeld}
        onClick={() => {
          if (!isHeld) dialog.current?.showModal()
        }}
      >
        Approve
      </button>
      <ConfirmDialog
        dialog={dialog}
        name={`Approve ${control}`}
        label="Approve"
        details={<Command approval={approval} />}
        onConfirm={() => void execution.execute('control.approve', () => ({ id }))}
      >
        <bdi>
          Run {control} on the server {producersOf(consumer).name}, as {asker} has asked?
        </bdi>
      </ConfirmDialog>
    </>
  )
}

function Refuse({ approval: { id, control, isOwn }, execution }: DecisionProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [reason, setReason] = useState('')
  const label = isOwn ? 'Take back' : 'Refuse'
  const isRunning = execution.run.kind === 'running'
  const send = (event: Event): void => {
    event.preventDefault()
    dialog.current?.close()
    void execution.execute('control.refuse', () => ({ id, reason }))
  }
  return (
    <>
      <button
        type="button"
        aria-label={`${label} ${control}`}
        aria-disabled={isRunning}
        onClick={() => {
          if (!isRunning) dialog.current?.showModal()
        }}
      >
        {label}
      </button>
      <dialog ref={dialog} class="refusing" aria-label={`${label} ${control}`}>
        <form onSubmit={send}>
          <label>
            {isOwn ? 'Why you do not need it any more' : 'Why, for whoever has asked'}
            <input
              name="reason"
              maxLength={250}
              autocomplete="off"
              required
              value={reason}
              onInput={({ currentTarget }) => setReason(currentTarget.value)}
            />
          </label>
          <div class="row">
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
            <button type="submit" class="danger">
              {label}
            </button>
          </div>
        </form>
      </dialog>
    </>
  )
}

/** What keeps it from being decided. What was decided is gone from the list, and stands below it. */
function Outcome({ execution: { run, again } }: Pick<DecisionProps, 'execution'>) {
  return (
    <span class="problem" role="status">
      {run.kind === 'ended' && run.outcome !== 'ok' ? [run.outcome, run.detail].filter(Boolean).join(': ') : null}
      {run.kind === 'refused' ? run.text : null}
      {run.kind === 'lost' ? (
        <>
          {run.text}{' '}
          <button type="button" onClick={() => void again()}>
            Ask again
          </button>
        </>
      ) : null}
    </span>
  )
}
