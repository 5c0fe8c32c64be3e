/** Starts the console in the page that loads this script. */
import { render } from 'preact'
import { App } from './app.tsx'
import { Router } from './route.ts'
import { Session } from './session.ts'

render(<App session={new Session()} router={new Router(window)} />, document.body)
