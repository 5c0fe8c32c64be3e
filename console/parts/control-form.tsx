/** A form that is made of the declared parameters of a control, and what came of it. */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { useIsListed } from '../query.ts'
import { linkTo } from '../route.ts'
import { ConfirmDialog } from './confirm-dialog.tsx'
import {
  argumentsOf,
  boundsText,
  type Control,
  isNumber,
  type Offer,
  type Parameter,
  problemOf,
  type Texts,
} from './control-parameters.ts'
import { type Ended, type Execution, useExecution } from './execution.ts'
import { Name } from './name.tsx'
import { State } from './state.tsx'
import { ValueOf } from './value-of.tsx'

interface ControlFormProps {
  readonly consumer: Consumer
  readonly control: Control
  /** What the button says. */
  readonly label?: string
  /** Arguments that are not asked for. */
  readonly given?: Texts
  readonly offers?: Readonly<Record<string, Offer>>
  /** Asked in words before it is done; undefined if it is done at once. */
  readonly question?: (texts: Texts) => string
  /** What stands below the question. */
  readonly details?: (texts: Texts) => preact.ComponentChildren
  /** Arguments that the page makes, at the time of the press. */
  readonly made?: () => Promise<Texts>
  /** Whether it can be tried: until that was allowed, Enter tries it. */
  readonly hasDryRun?: boolean
  /** Also of what was asked for again after a lost connection, but not of a dry run. */
  readonly onEnd?: (run: Ended) => void
  /** Shows what came of it in place of the usual result. */
  readonly result?: (run: Ended) => preact.ComponentChildren
}

export function ControlForm(props: ControlFormProps) {
  const {
    consumer,
    control,
    label = 'Run',
    given = {},
    offers = {},
    question,
    details,
    made,
    hasDryRun = false,
    onEnd,
  } = props
  const [texts, setTexts] = useState<Texts>({})
  const [isTried, setTried] = useState(false)
  /** Whether a dry run with these texts was allowed. */
  const [isAllowed, setAllowed] = useState(false)
  const execution = useExecution(consumer, (end) => {
    if (end.outcome === 'dry-run') setAllowed(true)
    else onEnd?.(end)
  })
  const form = useRef<HTMLFormElement>(null)
  const dialog = useRef<HTMLDialogElement>(null)
  const shown = control.parameters.filter(({ name }) => given[name] === undefined)
  const isRunning = execution.run.kind === 'running'
  const isDryFirst = hasDryRun && !isAllowed

  const isGood = (): boolean => {
    setTried(true)
    const wrong = shown.findIndex((parameter) => problemOf(parameter, texts[parameter.name] ?? '') !== '')
    if (wrong >= 0) form.current?.querySelectorAll<HTMLElement>('input, select')[wrong]?.focus()
    return wrong < 0
  }
  const execute = (isDry: boolean): void => {
    if (isRunning) return
    const argsOf = async () => argumentsOf(control.parameters, { ...texts, ...given, ...(!isDry && (await made?.())) })
    void execution.execute(control.name, argsOf, { isDry })
    setTried(false)
    // A secret never stays in the page after it was used.
    if (!isDry) setTexts(Object.fromEntries(Object.entries(texts).filter(([name]) => !isSecret(shown, name))))
  }
  const press = (isDry: boolean): void => {
    if (isRunning || !isGood()) return
    if (isDry || question === undefined) execute(isDry)
    else dialog.current?.showModal()
  }
  return (
    <>
      <form
        ref={form}
        class="fields"
        aria-label={label === 'Run' ? control.name : label}
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          press(isDryFirst)
        }}
      >
        {shown.map((parameter) => (
          <Field
            key={parameter.name}
            parameter={parameter}
            offer={offers[parameter.name]}
            value={texts[parameter.name] ?? ''}
            problem={isTried ? problemOf(parameter, texts[parameter.name] ?? '') : ''}
            onChange={(text) => {
              // Two fields may change before the form is drawn again, as when a browser fills them in.
              setTexts((before) => ({ ...before, [parameter.name]: text }))
              setAllowed(false)
            }}
          />
        ))}
        <div class="buttons">
          {hasDryRun ? (
            <Press isFirst={isDryFirst} isRunning={isRunning} onPress={() => press(true)}>
              Dry run
            </Press>
          ) : null}
          <Press isFirst={!isDryFirst} isRunning={isRunning} onPress={() => press(false)}>
            {isRunning ? 'Running …' : label}
          </Press>
        </div>
      </form>
      {question === undefined ? null : (
        <ConfirmDialog
          dialog={dialog}
          name={label}
          label={label}
          details={details?.(texts)}
          onConfirm={() => execute(false)}
        >
          <bdi>{question(texts)}</bdi>
        </ConfirmDialog>
      )}
      <Outcome consumer={consumer} execution={execution} control={control.name} result={props.result} />
    </>
  )
}

interface PressProps {
  /** Whether Enter in a field presses it. */
  readonly isFirst: boolean
  readonly isRunning: boolean
  readonly onPress: () => void
  readonly children: preact.ComponentChildren
}

/** It keeps the focus while something runs: a button that is disabled would lose it. */
function Press({ isFirst, isRunning, onPress, children }: PressProps) {
  const kind = isFirst ? ({ type: 'submit', class: 'first' } as const) : ({ type: 'button', onClick: onPress } as const)
  return (
    <button {...kind} aria-disabled={isRunning}>
      {children}
    </button>
  )
}

const SECRET = { type: 'password', autocomplete: 'new-password' } as const

function isSecret(parameters: readonly Parameter[], name: string): boolean {
  return parameters.find((parameter) => parameter.name === name)?.secret === true
}

interface FieldProps {
  readonly parameter: Parameter
  readonly offer: Offer | undefined
  readonly value: string
  readonly problem: string
  readonly onChange: (text: string) => void
}

/** Stands for a text that is not offered: no text has a line break in it. */
const ANOTHER = '\n'

function Field({ parameter, offer, value, problem, onChange }: FieldProps) {
  const id = useId()
  const [isTyped, setTyped] = useState(false)
  const { name, type, optional, description, secret, values, byDefault } = parameter
  const isOffered = offer !== undefined && offer.others !== 'typed' && !isTyped
  const choices = type === 'boolean' ? ['true', 'false'] : (values ?? (isOffered ? offer.texts : undefined))
  const common = {
    id,
    name,
    'aria-describedby': `${id}-about`,
    'aria-invalid': problem === '' ? undefined : ('true' as const),
    'aria-required': !optional,
  }
  useEffect(() => {
    if (isTyped) document.getElementById(id)?.focus()
  }, [isTyped])
  const choose = (text: string): void => {
    setTyped(text === ANOTHER)
    onChange(text === ANOTHER ? '' : text)
  }
  return (
    <div class="field">
      <label for={id} class="code">
        <Name text={name} />
      </label>
      {choices === undefined || secret ? (
        <input
          {...common}
          {...(secret ? SECRET : { type: 'text', autocomplete: 'off', list: offer && `${id}-offers` })}
          spellcheck={false}
          inputmode={isNumber(parameter) ? (type === 'double' ? 'decimal' : 'numeric') : 'text'}
          placeholder={byDefault}
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      ) : (
        <select {...common} value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
          <option value="">{optional ? `left out${byDefault === '' ? '' : `: ${byDefault}`}` : 'choose'}</option>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {type === 'boolean' ? (choice === 'true' ? 'yes' : 'no') : choice}
            </option>
          ))}
          {isOffered && offer.others === 'on-request' ? <option value={ANOTHER}>another {name} …</option> : null}
        </select>
      )}
      {isTyped ? (
        <button type="button" class="plain" onClick={() => choose('')}>
          choose one that there is
        </button>
      ) : null}
      {offer?.others !== 'typed' ? null : (
        <datalist id={`${id}-offers`}>
          {offer.texts.map((text) => (
            <option key={text} value={text} />
          ))}
        </datalist>
      )}
      <small id={`${id}-about`}>
        {problem === '' ? null : <span class="problem">{problem} </span>}
        <bdi>{description}</bdi> <span class="code">{boundsText(parameter)}</span>
      </small>
    </div>
  )
}

interface OutcomeProps {
  readonly consumer: Consumer
  readonly execution: Execution
  readonly control: string
  readonly result: ControlFormProps['result']
}

function Outcome({ consumer, execution: { run, again }, control, result }: OutcomeProps) {
  return (
    <div aria-live="polite">
      {run.kind === 'running' && run.isRepeated ? (
        <p class="padded note">The connection was lost. What was run is not run again: its result is asked for.</p>
      ) : null}
      {run.kind === 'refused' ? (
        <p class="padded problem">
          <bdi>{run.text}</bdi>
        </p>
      ) : null}
      {run.kind === 'lost' ? (
        <p class="padded problem">
          {run.text} It is not known whether it ran.{' '}
          <button type="button" onClick={() => void again()}>
            Ask again
          </button>
        </p>
      ) : null}
      {run.kind === 'ended'
        ? (run.outcome === 'ok' && result?.(run)) || <Result consumer={consumer} run={run} control={control} />
        : null}
    </div>
  )
}

const OUTCOMES: Readonly<Record<string, string>> = { 'dry-run': 'allowed: nothing was run', ok: 'done' }

interface ResultProps {
  readonly consumer: Consumer
  readonly run: Ended
  readonly control: string
}

function Result({ consumer, run, control }: ResultProps) {
  const { outcome, detail, value, id, begun } = run
  const isAudited = useIsListed(consumer, 'producer.metrics', 'producer.audit')
  const isDry = outcome === 'dry-run'
  const since = new Date(begun / 1000).toISOString()
  return (
    <section class="result" aria-label="Result">
      <div class="head">
        <State
          look={isDry || outcome === 'ok' ? 'good' : 'attention'}
          text={OUTCOMES[outcome] ?? outcome}
          detail={isDry ? '' : detail}
        />
        <p class="choices">
          <span>result {id}</span>
          {isAudited ? (
            <a href={linkTo('audit', '', { object: control, result: String(id), since })}>audit records</a>
          ) : null}
        </p>
      </div>
      <ValueOf value={value} />
    </section>
  )
}
