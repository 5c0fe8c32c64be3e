/** What a state looks like. States differ by shape as well as by colour. */
import type { Look } from '../fleet.ts'
import type { Refusal } from '../query.ts'

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

interface UnreadableProps {
  readonly what: string
  readonly refusal: Refusal
}

/** In place of a list that is not there. */
export function Unreadable({ what, refusal: { reason, isByServer } }: UnreadableProps) {
  return isByServer ? (
    <p class="empty">
      Your role may not read the {what}. <small>{reason}</small>
    </p>
  ) : (
    <p class="empty">
      The {what} cannot be read: <bdi>{reason}</bdi>
    </p>
  )
}
