from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen


class Site(SimpleHTTPRequestHandler):
    def do_GET(self):  # the page beside this file and nothing else: this file holds the key
        self.path = "/browser.html"
        super().do_GET()

    do_HEAD = do_GET

    def do_POST(self):  # /secret: whoever may ask for one may talk for ten minutes
        headers = {"Authorization": "Bearer sk-…", "Content-Type": "application/json"}
        session = b'{"session": {"type": "realtime", "model": "voice"}}'
        with urlopen(Request("http://localhost:8000/v1/realtime/client_secrets", session, headers)) as secret:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(secret.read())


ThreadingHTTPServer(("127.0.0.1", 8080), Site).serve_forever()
