/**
 * A button that runs a control after it was asked in words. A double click runs it once, since each question has one idempotency
 * key, and what was done stands beside the button.
 */
import { useRef, useState } from 'preact/hooks'
import type { Consumer, PlainRecord } from '../../client/browser.ts'
import { messageOf } from './query.ts'

interface ActionProps {
  readonly consumer: Consumer
  readonly label: string
  /** What is asked before it is done: what will be lost, in numbers. */
  readonly question: string
  readonly control: string
  readonly args: Readonly<Record<string, string | number | boolean>>
}

type Progress = { readonly kind: 'idle' | 'running' } | { readonly kind: 'done' | 'failed'; readonly text: string }

export function Action({ consumer, label, question, control, args }: ActionProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const key = useRef('')
  const [progress, setProgress] = useState<Progress>({ kind: 'idle' })

  const ask = (): void => {
    key.current = crypto.randomUUID()
    setProgress({ kind: 'idle' })
    dialog.current?.showModal()
  }
  const run = async (): Promise<void> => {
    dialog.current?.close()
    setProgress({ kind: 'running' })
    try {
      const result = await consumer.execute(control, { ...args, idempotency_key: key.current })
      const { outcome, detail } = result.plain as PlainRecord
      const text = [String(outcome), String(detail ?? '')].filter(Boolean).join(': ')
      setProgress({ kind: outcome === 'ok' ? 'done' : 'failed', text: outcome === 'ok' ? 'done' : text })
    } catch (error) {
      setProgress({ kind: 'failed', text: messageOf(error) })
    }
  }
  return (
    <>
      <button type="button" disabled={progress.kind === 'running'} onClick={ask}>
        {label}
      </button>
      {'text' in progress ? (
        <span class={progress.kind === 'failed' ? 'problem' : 'note'} role="status">
          {progress.text}
        </span>
      ) : null}
      <dialog ref={dialog} aria-label={label}>
        <p>{question}</p>
        <div class="row">
          <button type="button" autofocus onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="button" class="danger" onClick={() => void run()}>
            {label}
          </button>
        </div>
      </dialog>
    </>
  )
}
