/** What a state looks like. States differ by shape as well as by colour. */
import type { Look } from '../fleet.ts'
import type { Refusal } from '../refusals.ts'
import { linkTo } from '../route.ts'

const shapes: Readonly<Record<Look, string>> = { good: '●', attention: '◆', gone: '○' }

interface StateProps {
  readonly look: Look
  readonly text: string
  /** Why it is so, below it. */
  readonly detail?: string
}

export function State({ look, text, detail = '' }: StateProps) {
  return (
    <span class="state">
      <span class={`shape ${look}`} aria-hidden="true">
        {shapes[look]}
      </span>{' '}
      <bdi>{text}</bdi>
      {detail === '' ? null : (
        <small>
          <bdi>{detail}</bdi>
        </small>
      )}
    </span>
  )
}

/** What cannot be shown, and why; nothing if there is no reason. */
export function Problem({ text = '' }: { readonly text?: string | undefined }) {
  return text === '' ? null : (
    <p class="banner" role="alert">
      {text}
    </p>
  )
}

/** In place of what the server has not answered yet. It is not said before it would be noticed. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="empty late" role="status">
      Loading {what} …
    </p>
  )
}

interface AbsentProps {
  readonly what: string
  /** Why it cannot be read; undefined if the answer is awaited. */
  readonly problem: string | undefined
}

/** In place of what is not there: it was refused, or it is on its way. */
export function Absent({ what, problem }: AbsentProps) {
  return problem === undefined ? (
    <Loading what={what} />
  ) : (
    <p class="empty refused" role="alert">
      <span class="shape attention" aria-hidden="true">
        ◆
      </span>{' '}
      <bdi>{problem}</bdi>
    </p>
  )
}

/** In place of a view that there is not. */
export function NoSuchPage() {
  return (
    <>
      <header>
        <h1>No such page</h1>
      </header>
      <p class="empty">
        There is nothing at <code>{location.hash}</code>. <a href={linkTo('overview')}>Overview</a>
      </p>
    </>
  )
}

interface UnreadableProps {
  readonly what: string
  readonly refusal: Refusal
}

/** In place of a list that is not there. */
export function Unreadable({ what, refusal: { reason, isByServer } }: UnreadableProps) {
  return isByServer ? (
    <p class="empty" role="alert">
      Your role may not read the {what}. <small>{reason}</small>
    </p>
  ) : (
    <p class="empty" role="alert">
      The {what} cannot be read: <bdi>{reason}</bdi>
    </p>
  )
}
