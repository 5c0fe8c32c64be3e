/** The settings of a channel in a dialog. What was not changed is not sent; the server judges what may be set. */
import { useRef, useState } from 'preact/hooks'
import type { Consumer, PlainRecord } from '../../client/browser.ts'
import type { ChannelState } from '../fleet.ts'
import { formatBytes, formatDuration } from '../units.ts'
import { messageOf } from './query.ts'

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

interface FormProps {
  readonly consumer: Consumer
  readonly channel: ChannelState
  readonly title: string
}

export function ChannelSettingsForm({ consumer, channel, title }: FormProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const [problem, setProblem] = useState('')
  const [isDone, setDone] = useState(false)

  const open = (): void => {
    setValues({
      ...Object.fromEntries(NUMBERS.map(({ name, of }) => [name, String(of(channel))])),
      overflow: channel.settings.overflow,
    })
    setProblem('')
    setDone(false)
    dialog.current?.showModal()
  }
  const save = async (): Promise<void> => {
    const changed: Record<string, number | string> = {}
    for (const { name, of } of NUMBERS) if (values[name] !== String(of(channel))) changed[name] = Number(values[name])
    const { overflow = '' } = values
    if (overflow !== channel.settings.overflow) changed['overflow'] = overflow
    try {
      if (Object.keys(changed).length > 0) {
        const result = (await consumer.execute('channel.configure', { channel: channel.id, ...changed })).plain
        const { outcome, detail } = result as PlainRecord
        if (outcome !== 'ok') return setProblem(`${outcome}: ${detail}`)
      }
      setDone(true)
      dialog.current?.close()
    } catch (error) {
      setProblem(messageOf(error))
    }
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
            void save()
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
                onInput={({ currentTarget: { value } }) => setValues({ ...values, [name]: value })}
              />
              <small>{hint(Number(values[name]))}</small>
            </p>
          ))}
          <p>
            <label for="setting-overflow">When the queue is full</label>
            <select
              id="setting-overflow"
              value={values['overflow'] ?? ''}
              onChange={({ currentTarget: { value } }) => setValues({ ...values, overflow: value })}
            >
              {OVERFLOWS.map((overflow) => (
                <option key={overflow}>{overflow}</option>
              ))}
            </select>
          </p>
          <p class="problem" role="alert">
            {problem}
          </p>
          <div class="row">
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
            <button type="submit" class="first">
              Store
            </button>
          </div>
        </form>
      </dialog>
    </>
  )
}
