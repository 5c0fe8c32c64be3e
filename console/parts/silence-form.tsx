/** Nobody is told of some alerts for a while: which ones, for how long and why. */
import { useRef, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { type ActiveAlert, matchersOf, SILENCE_SECONDS } from '../alerts.ts'
import { formatDuration } from '../units.ts'
import { useExecution } from './execution.ts'

const USUAL_SECONDS = 7_200
const KINDS = [
  ['alert.silence', 'also those that begin to fire later: a silence'],
  ['alert.acknowledge', 'only those that fire now: an acknowledgement'],
] as const

interface SilenceButtonProps {
  readonly consumer: Consumer
  /** Those that may be run. */
  readonly controls: ReadonlySet<string>
  /** What the matchers begin with; undefined: nothing. */
  readonly alert?: ActiveAlert
  readonly onDone: () => void
}

export function SilenceButton({ consumer, controls, alert, onDone }: SilenceButtonProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  // Each time the form begins anew.
  const [round, setRound] = useState(0)
  const label = alert === undefined ? 'New silence' : 'Silence'
  const open = (): void => {
    setRound(round + 1)
    dialog.current?.showModal()
  }
  const close = (): void => dialog.current?.close()
  return (
    <>
      <button type="button" aria-label={alert === undefined ? label : `Silence ${alert.name}`} onClick={open}>
        {label}
      </button>
      <dialog ref={dialog} class="silencing" aria-label={label}>
        <SilenceForm
          key={round}
          consumer={consumer}
          matchers={alert === undefined ? [] : matchersOf(alert)}
          mayAcknowledge={controls.has('alert.acknowledge')}
          onCancel={close}
          onDone={() => {
            close()
            onDone()
          }}
        />
      </dialog>
    </>
  )
}

interface SilenceFormProps {
  readonly consumer: Consumer
  readonly matchers: readonly string[]
  readonly mayAcknowledge: boolean
  readonly onCancel: () => void
  readonly onDone: () => void
}

function SilenceForm({ consumer, matchers, mayAcknowledge, onCancel, onDone }: SilenceFormProps) {
  const [text, setText] = useState(matchers.join('\n'))
  const [seconds, setSeconds] = useState<number>(USUAL_SECONDS)
  const [comment, setComment] = useState('')
  const [control, setControl] = useState<'alert.silence' | 'alert.acknowledge'>('alert.silence')
  const { run, execute, again } = useExecution(consumer, ({ outcome }) => {
    if (outcome === 'ok') onDone()
  })
  const isRunning = run.kind === 'running'
  const send = (event: Event): void => {
    event.preventDefault()
    if (isRunning) return
    const args = { matchers: text, seconds: BigInt(seconds), ...(comment !== '' && { comment }) }
    void (run.kind === 'lost' ? again() : execute(control, () => args))
  }
  return (
    <form onSubmit={send}>
      <label>
        Alerts that match each of these lines
        <textarea
          name="matchers"
          rows={Math.min(10, Math.max(3, matchers.length))}
          spellcheck={false}
          autocomplete="off"
          placeholder={'severity="page"\nhost=~"web.*"'}
          required
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      {mayAcknowledge ? (
        <fieldset>
          <legend>Which of them</legend>
          {KINDS.map(([name, title]) => (
            <label key={name} class="kind">
              <input
                type="radio"
                name="control"
                value={name}
                checked={name === control}
                onChange={() => setControl(name)}
              />{' '}
              {title}
            </label>
          ))}
        </fieldset>
      ) : null}
      <label>
        For
        <select
          name="seconds"
          value={seconds}
          onChange={({ currentTarget }) => setSeconds(Number(currentTarget.value))}
        >
          {SILENCE_SECONDS.map((one) => (
            <option key={one} value={one}>
              {formatDuration(one)}
            </option>
          ))}
        </select>
      </label>
      <label>
        Why, for the others
        <input
          name="comment"
          maxLength={1000}
          autocomplete="off"
          value={comment}
          onInput={({ currentTarget }) => setComment(currentTarget.value)}
        />
      </label>
      <p class="problem" role="alert">
        {run.kind === 'refused' || run.kind === 'lost' ? run.text : null}
        {run.kind === 'ended' && run.outcome !== 'ok' ? [run.outcome, run.detail].filter(Boolean).join(': ') : null}
      </p>
      <div class="row">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" class="first" aria-disabled={isRunning}>
          {control === 'alert.silence' ? 'Silence' : 'Acknowledge'}
        </button>
      </div>
    </form>
  )
}
