/** The sign-in. Where a browser gives a page no cryptography, it says what is needed instead. */
import { useState } from 'preact/hooks'
import type { Session, SessionState } from '../session.ts'

interface SignInProps {
  readonly session: Session
  readonly state: Exclude<SessionState, { readonly kind: 'in' }>
}

export function SignIn({ session, state }: SignInProps) {
  const [isToken, setToken] = useState(false)
  if (!isSecureContext) return <NeedsHttps />
  const isConnecting = state.kind === 'connecting'
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const text = (name: string): string => String(form.get(name) ?? '')
    void session.signIn(text('identity'), isToken ? { token: text('token') } : { password: text('password') })
  }
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit} aria-label="Sign in">
        <h1 class="mark">Cinnabar</h1>
        {isToken ? (
          <label>
            Token
            <input name="token" type="password" autocomplete="off" required />
          </label>
        ) : (
          <>
            <label>
              User
              <input name="identity" autocomplete="username" required autofocus />
            </label>
            <label>
              Password
              <input name="password" type="password" autocomplete="current-password" required />
            </label>
          </>
        )}
        <p class="problem" role="alert">
          {state.kind === 'out' ? state.reason : ''}
        </p>
        <div class="row">
          <button type="submit" class="first" disabled={isConnecting}>
            {isConnecting ? 'Signing in …' : 'Sign in'}
          </button>
          <button type="button" class="plain" onClick={() => setToken(!isToken)}>
            {isToken ? 'Use a password' : 'Use a token'}
          </button>
        </div>
      </form>
    </main>
  )
}

function NeedsHttps() {
  return (
    <main class="sign-in">
      <section class="card" aria-label="Sign in">
        <h1 class="mark">Cinnabar</h1>
        <p class="problem" role="alert">
          Sign-in needs https here: browsers give no cryptography to a page that comes over plain http from another
          machine. Set <code>listen.https</code>, <code>tls.cert</code> and <code>tls.key</code> in the configuration of
          the server, or open this page on the machine of the server itself.
        </p>
      </section>
    </main>
  )
}
