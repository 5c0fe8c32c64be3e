/** The settings of a channel in a dialog. What was not changed is not sent; the server judges what may be set. */
import { useRef, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import type { ChannelState } from '../fleet.ts'
import { formatBytes, formatCount, formatDuration } from '../units.ts'
import { useExecution } from './execution.ts'

const OVERFLOWS = ['drop-oldest', 'drop-newest', 'keep-latest'] as const

interface NumberField {
  readonly name: string
  readonly label: string
  readonly of: (channel: ChannelState) => number
  readonly hint: (value: number) => string
}

const NUMBERS: readonly NumberField[] = [
  {
    name: 'window',
    label: 'Values that may be sent and not committed',
    of: ({ settings }) => settings.window,
    hint: () => '',
  },
  {
    name: 'window_bytes',
    label: 'The same in bytes',
    of: ({ settings }) => settings.windowBytes,
    hint: (bytes) => formatBytes(bytes),
  },
  {
    name: 'max_bytes',
    label: 'Bytes that may be queued',
    of: ({ settings }) => settings.maxBytes,
    hint: (bytes) => formatBytes(bytes),
  },
  {
    name: 'max_age_ms',
    label: 'Milliseconds that a value waits',
    of: ({ settings }) => settings.maxAgeMs,
    hint: (ms) => formatDuration(ms / 1000),
  },
  {
    name: 'expire_ms',
    label: 'Milliseconds that the channel waits for its consumer',
    of: ({ settings }) => settings.expireMs,
    hint: (ms) => formatDuration(ms / 1000),
  },
]

/** By the names of the arguments, as they are typed. */
type Settings = Readonly<Record<string, string>>

interface FormProps {
  readonly consumer: Consumer
  readonly channel: ChannelState
  readonly title: string
}

export function ChannelSettingsForm({ consumer, channel, title }: FormProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  /** As they were when the dialog was opened: what somebody else changes meanwhile is not set back. */
  const [before, setBefore] = useState<Settings>({})
  const [values, setValues] = useState<Settings>({})
  const [isDone, setDone] = useState(false)
  const { run, execute, again, reset } = useExecution(consumer, ({ outcome }) => {
    if (outcome === 'ok') close(true)
  })

  const open = (): void => {
    const settings = settingsOf(channel)
    setBefore(settings)
    setValues(settings)
    setDone(false)
    reset()
    dialog.current?.showModal()
  }
  const close = (isStored: boolean): void => {
    setDone(isStored)
    dialog.current?.close()
  }
  const save = (): void => {
    const changed = Object.entries(values).filter(([name, value]) => value !== before[name])
    if (changed.length === 0) {
      close(true)
      return
    }
    const args = changed.map(([name, value]) => [name, name === 'overflow' ? value : Number(value)])
    void execute('channel.configure', () => ({ channel: channel.id, ...Object.fromEntries(args) }))
  }
  return (
    <>
      <button type="button" onClick={open}>
        Configure
      </button>
      {isDone ? (
        <span class="note" role="status">
          stored
        </span>
      ) : null}
      <dialog ref={dialog} aria-label={`Settings of ${title}`}>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            save()
          }}
        >
          {NUMBERS.map(({ name, label, hint }) => (
            <p key={name}>
              <label for={`setting-${name}`}>{label}</label>
              <input
                id={`setting-${name}`}
                inputmode="numeric"
                pattern="[0-9]+"
                required
                value={values[name] ?? ''}
                onInput={({ currentTarget: { value } }) => setValues((before) => ({ ...before, [name]: value }))}
              />
              <small>{hint(Number(values[name]))}</small>
            </p>
          ))}
          <p>
            <label for="setting-overflow">When the queue is full</label>
            <select
              id="setting-overflow"
              value={values['overflow'] ?? ''}
              onChange={({ currentTarget: { value } }) => setValues((before) => ({ ...before, overflow: value }))}
            >
              {OVERFLOWS.map((overflow) => (
                <option key={overflow}>{overflow}</option>
              ))}
            </select>
          </p>
          <p role="status">{lossOf(channel, before, values)}</p>
          <p class="problem" role="alert">
            {run.kind === 'refused' ? run.text : ''}
            {run.kind === 'ended' && run.outcome !== 'ok' ? `${run.outcome}: ${run.detail}` : ''}
            {run.kind === 'lost' ? (
              <>
                {run.text}. It is not known whether it was stored.{' '}
                <button type="button" onClick={() => void again()}>
                  Ask again
                </button>
              </>
            ) : null}
          </p>
          <div class="row">
            <button type="button" onClick={() => close(false)}>
              Cancel
            </button>
            <button type="submit" class="first" aria-disabled={run.kind === 'running'}>
              {run.kind === 'running' ? 'Storing …' : 'Store'}
            </button>
          </div>
        </form>
      </dialog>
    </>
  )
}

function settingsOf(channel: ChannelState): Settings {
  const numbers = NUMBERS.map(({ name, of }) => [name, String(of(channel))])
  return { ...Object.fromEntries(numbers), overflow: channel.settings.overflow }
}

/** What may be lost by smaller limits; empty if nothing is. */
function lossOf({ queued, queuedBytes }: ChannelState, before: Settings, values: Settings): string {
  const isSmaller = (name: string): boolean => Number(values[name]) < Number(before[name])
  const causes = [
    isSmaller('max_bytes') && Number(values['max_bytes']) < queuedBytes && 'what does not fit any more',
    isSmaller('max_age_ms') && 'what has waited longer',
  ].filter(Boolean)
  if (queued === 0 || causes.length === 0) return ''
  const waiting = `${formatCount(queued)} queued (${formatBytes(queuedBytes)})`
  return `Values may be lost: there are ${waiting}, and ${causes.join(', or ')}, is dropped. The consumer is informed.`
}
