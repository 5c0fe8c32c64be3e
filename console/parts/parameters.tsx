/** The parameters of a metric to choose, and the choice of another metric: what there is comes from the server. */
import { useEffect, useId, useMemo, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import type { CatalogueEntry, CatalogueParameter } from '../catalogue.ts'
import { argumentsFor, naturalOrder, OWN, producersOf } from '../producers.ts'
import { recordsOf, untilAnswered, useQuery } from '../query.ts'
import type { LineArguments } from '../series-watch.ts'

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

/** What stands in an empty field: what it means to leave it out. */
const ANY = 'any, or a pattern: *'
const THIS_SERVER = 'this server, or a pattern: *'
const PRODUCER = 'producer'

export function Parameters({ consumer, entry, args, onChange }: ParametersProps) {
  const { name: own, below } = producersOf(consumer)
  const { name: metric, parameters } = entry
  const asked = useMemo(() => parameters.filter(({ name }) => name !== PRODUCER), [parameters])
  const choices = useChoices(consumer, metric, asked, args[PRODUCER])
  const change = (name: string, value: string): void => {
    const { [name]: _, ...rest } = args
    onChange(value === '' ? rest : { ...rest, [name]: value })
  }
  const isAmongSeveral = below.length > 0 || args[PRODUCER] !== undefined
  if (asked.length === 0 && !isAmongSeveral) return null
  return (
    <form class="parameters" onSubmit={(event) => event.preventDefault()} aria-label="Parameters">
      {isAmongSeveral ? (
        <Choice
          name={PRODUCER}
          description="The server that measures it."
          value={args[PRODUCER] ?? ''}
          empty={THIS_SERVER}
          choices={[own, ...below]}
          onChange={(value) => change(PRODUCER, value)}
        />
      ) : null}
      {asked.map(({ name, description }) => (
        <Choice
          key={name}
          name={name}
          description={description}
          value={args[name] ?? ''}
          empty={ANY}
          choices={choices.get(name) ?? []}
          onChange={(value) => change(name, value)}
        />
      ))}
    </form>
  )
}

interface ChoiceProps {
  readonly name: string
  readonly description: string
  readonly value: string
  /** Stands in the field while it is empty. */
  readonly empty: string
  readonly choices: readonly string[]
  readonly onChange: (value: string) => void
}

function Choice({ name, description, value, empty, choices, onChange }: ChoiceProps) {
  const id = useId()
  return (
    <label>
      <span class="note">{name}</span>
      <input
        list={id}
        name={`parameter-${name}`}
        value={value}
        placeholder={empty}
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

/**
 * What can be chosen of each parameter: the labels of the series, or where a metric is measured on request or by another producer,
 * those of its values.
 */
function useChoices(
  consumer: Consumer,
  name: string,
  parameters: readonly CatalogueParameter[],
  producer = OWN,
): ReadonlyMap<string, readonly string[]> {
  const [choices, setChoices] = useState<ReadonlyMap<string, readonly string[]>>(new Map())
  useEffect(() => {
    const abort = new AbortController()
    const { signal } = abort
    const load = async (): Promise<void> => {
      const found = new Map(parameters.map((one) => [one.name, new Set<string>()]))
      const add = (parameter: string, value: unknown): void => {
        const known = found.get(parameter)
        if (typeof value === 'string' && value !== '' && known !== undefined && known.size < MAX_CHOICES)
          known.add(value)
      }
      if (producer === OWN) {
        const { plain } = await consumer.query('producer.series', { match: name, limit: MAX_SERIES }, { signal })
        for (const record of recordsOf(plain)) for (const [label, value] of Object.entries(record)) add(label, value)
      }
      for (const [parameter, known] of found) {
        if (known.size > 0) continue
        const { elements } = await consumer.query(name, { ...argumentsFor(producer), [parameter]: '*' }, { signal })
        for (const { labels } of elements) add(parameter, labels[parameter])
      }
      setChoices(
        new Map([...found].map(([parameter, known]) => [parameter, [...known].toSorted(naturalOrder.compare)])),
      )
    }
    // Without choices a value can be typed.
    untilAnswered(consumer, signal, load).catch(() => {})
    return () => abort.abort()
  }, [consumer, name, parameters, producer])
  return choices
}
