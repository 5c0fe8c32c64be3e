/** A button that runs a control after it was asked in words. What was done stands beside the button. */
import { useRef } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import type { Arguments } from '../query.ts'
import { ConfirmDialog } from './confirm-dialog.tsx'
import { useExecution } from './execution.ts'

interface ActionProps {
  readonly consumer: Consumer
  readonly label: string
  /** What it is about, for those who do not see the row that it stands in. */
  readonly object?: string
  /** What is asked before it is done: what will be lost, in numbers. */
  readonly question: string
  readonly control: string
  readonly args: Arguments
  readonly onDone?: () => void
}

export function Action({ consumer, label, object = '', question, control, args, onDone }: ActionProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const { run, execute, again, reset } = useExecution(consumer, ({ outcome }) => {
    if (outcome === 'ok') onDone?.()
  })
  const isRunning = run.kind === 'running'
  const ask = (): void => {
    if (isRunning) return
    reset()
    dialog.current?.showModal()
  }
  const name = object === '' ? label : `${label} ${object}`
  return (
    <>
      <button type="button" aria-disabled={isRunning} aria-label={name} onClick={ask}>
        {label}
      </button>
      {run.kind === 'ended' ? (
        <span class={run.outcome === 'ok' ? 'note' : 'problem'} role="status">
          {run.outcome === 'ok' ? 'done' : [run.outcome, run.detail].filter(Boolean).join(': ')}
        </span>
      ) : null}
      {run.kind === 'refused' || run.kind === 'lost' ? (
        <span class="problem" role="status">
          {run.text}{' '}
          {run.kind === 'lost' ? (
            <button type="button" onClick={() => void again()}>
              Ask again
            </button>
          ) : null}
        </span>
      ) : null}
      <ConfirmDialog
        dialog={dialog}
        name={name}
        label={label}
        isDangerous
        onConfirm={() => void execute(control, () => args)}
      >
        <bdi>{question}</bdi>
      </ConfirmDialog>
    </>
  )
}
