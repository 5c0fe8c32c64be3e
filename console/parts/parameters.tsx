/** The parameters of a metric to choose, and the choice of another metric: what there is comes from the server. */
import { useEffect, useId, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import type { CatalogueEntry } from '../catalogue.ts'
import { naturalOrder } from '../hosts.ts'
import type { LineArguments } from '../series-watch.ts'
import { recordsOf, untilAnswered, useQuery } from './query.ts'

/** Choices that are offered of one parameter; others can be typed. */
const MAX_CHOICES = 500
const MAX_SERIES = 2_000
const MAX_METRICS = 30
const TYPING_MS = 60

interface ParametersProps {
  readonly consumer: Consumer
  readonly entry: CatalogueEntry
  readonly args: LineArguments
  readonly onChange: (args: LineArguments) => void
}

export function Parameters({ consumer, entry, args, onChange }: ParametersProps) {
  const choices = useChoices(consumer, entry)
  return (
    <form class="parameters" onSubmit={(event) => event.preventDefault()} aria-label="Parameters">
      {entry.parameters.map(({ name, description }) => (
        <Choice
          key={name}
          name={name}
          description={description}
          value={args[name] ?? ''}
          choices={choices.get(name) ?? []}
          onChange={(value) => {
            const { [name]: _, ...rest } = args
            onChange(value === '' ? rest : { ...rest, [name]: value })
          }}
        />
      ))}
    </form>
  )
}

interface ChoiceProps {
  readonly name: string
  readonly description: string
  readonly value: string
  readonly choices: readonly string[]
  readonly onChange: (value: string) => void
}

function Choice({ name, description, value, choices, onChange }: ChoiceProps) {
  const id = useId()
  return (
    <label>
      <span class="note">{name}</span>
      <input
        list={id}
        name={`parameter-${name}`}
        value={value}
        placeholder="any, or a pattern: *"
        title={description}
        autocomplete="off"
        onChange={({ currentTarget }) => onChange(currentTarget.value.trim())}
      />
      <datalist id={id}>
        {choices.map((choice) => (
          <option key={choice} value={choice} />
        ))}
      </datalist>
    </label>
  )
}

export function MetricPicker({
  consumer,
  onPick,
}: {
  readonly consumer: Consumer
  readonly onPick: (metric: string) => void
}) {
  const id = useId()
  const [text, setText] = useState('')
  const match = `*${text.trim()}*`
  const answer = useQuery(consumer, 'producer.metrics', { match, limit: MAX_METRICS }, { delayMs: TYPING_MS })
  const names = answer.kind === 'answer' ? recordsOf(answer.sample.plain).map(({ name }) => String(name)) : []
  const pick = (): void => {
    if (text.trim() === '') return
    onPick(text.trim())
    setText('')
  }
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault()
        pick()
      }}
    >
      <input
        list={id}
        value={text}
        aria-label="Another metric for this chart"
        placeholder="Another metric for this chart"
        autocomplete="off"
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <datalist id={id}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <button type="submit">Add</button>
    </form>
  )
}

/** What can be chosen of each parameter: the labels of the series, or where a metric is measured on request, those of its values. */
function useChoices(consumer: Consumer, { name, parameters }: CatalogueEntry): ReadonlyMap<string, readonly string[]> {
  const [choices, setChoices] = useState<ReadonlyMap<string, readonly string[]>>(new Map())
  useEffect(() => {
    const abort = new AbortController()
    const { signal } = abort
    const load = async (): Promise<void> => {
      const { plain } = await consumer.query('producer.series', { match: name, limit: MAX_SERIES }, { signal })
      const found = new Map(parameters.map((one) => [one.name, new Set<string>()]))
      const add = (parameter: string, value: unknown): void => {
        const known = found.get(parameter)
        if (typeof value === 'string' && value !== '' && known !== undefined && known.size < MAX_CHOICES)
          known.add(value)
      }
      for (const record of recordsOf(plain)) for (const [label, value] of Object.entries(record)) add(label, value)
      for (const [parameter, known] of found) {
        if (known.size > 0) continue
        const { elements } = await consumer.query(name, { [parameter]: '*' }, { signal })
        for (const { labels } of elements) add(parameter, labels[parameter])
      }
      setChoices(
        new Map([...found].map(([parameter, known]) => [parameter, [...known].toSorted(naturalOrder.compare)])),
      )
    }
    // Without choices a value can be typed.
    untilAnswered(consumer, signal, load).catch(() => {})
    return () => abort.abort()
  }, [consumer, name, parameters])
  return choices
}
