"""Makes and checks what is handed out: wheels, source distribution, wheelhouse, licences."""
